"""`podstatus drain`: terminate all pods of the running agent by priority, and wait for it."""

from typing import Annotated

import typer

from podstatus.cli.errors import report_errors
from podstatus.cli.options import RootDirOption, parse_timeout

TimeoutOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Maximum time that the command waits for the drain to complete, such as 5m. The drain "
        "continues after a timeout. Default: 0, no limit.",
        show_default=False,
    ),
]
CancelOption = Annotated[
    bool, typer.Option("--cancel", help="Cancel the drain, so that the node accepts pods again.")
]


def drain(
    *, root_dir: RootDirOption = None, timeout: TimeoutOption = "0", cancel: CancelOption = False
) -> None:
    """Terminate all pods on this node and reject new ones.

    Critical pods are terminated after the others. Terminated pods are not restarted; this is not
    kubectl drain. The node accepts pods again when the drain is cancelled with --cancel or the
    agent is restarted.
    """
    seconds = parse_timeout(timeout)
    from podstatus.cli.actions.drain_node import cancel_drain, drain_node

    with report_errors():
        if cancel:
            cancel_drain(root_dir)
        else:
            drain_node(root_dir, seconds)
