"""`podstatus run`: run a node agent, optionally under a supervisor."""

from typing import Annotated

import typer

from podstatus.cli.options import StopAtEofOption
from podstatus.cli.paused_gc import paused_gc
from podstatus.cli.setting_options import Flags, with_settings

FreePortsOption = Annotated[
    bool,
    typer.Option("--use-free-ports", help="Listen on free ports instead of those that are in use."),
]
FromMakeOption = Annotated[
    bool,
    typer.Option("--from-make", hidden=True, help="Name make run in messages, not this command."),
]


@with_settings
def run(
    flags: Flags,
    *,
    use_free_ports: FreePortsOption = False,
    stop_at_eof: StopAtEofOption = False,
    from_make: FromMakeOption = False,
) -> None:
    """Run a node that starts pods and reports their status.

    Each setting can also be given as an environment variable, for example PODSTATUS_MAX_PODS for
    --max-pods. Flags override environment variables, which override the --config file.
    """
    with paused_gc():
        from podstatus.cli.start.run_node import run_node

    run_node(flags, use_free_ports=use_free_ports, stop_at_eof=stop_at_eof, from_make=from_make)
