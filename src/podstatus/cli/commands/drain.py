"""`podstatus drain`: terminate all pods of the running agent by priority, and wait for it."""

from typing import Annotated

import typer

from podstatus.cli.errors import report_errors, usage_error
from podstatus.cli.options import RootDirOption
from podstatus.kube.scalars.duration import DurationError, parse_duration

TimeoutOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Maximum time that the command waits for the drain to complete, such as 5m; 0 means "
        "no limit. The drain continues after a timeout.",
    ),
]
CancelOption = Annotated[
    bool, typer.Option("--cancel", help="Cancel the drain, so that the node accepts pods again.")
]


def drain(
    *, root_dir: RootDirOption = None, timeout: TimeoutOption = "0", cancel: CancelOption = False
) -> None:
    """Terminate all pods on this node and reject new ones.

    Critical pods are terminated after the others. The node accepts pods again when the drain is
    cancelled with --cancel or the agent is restarted.
    """
    seconds = _parse_timeout(timeout)
    from podstatus.cli.drain_node import cancel_drain, drain_node

    with report_errors():
        if cancel:
            cancel_drain(root_dir)
        else:
            drain_node(root_dir, seconds)


def _parse_timeout(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        usage_error(f"--timeout: {error}")
    if seconds < 0:
        usage_error("--timeout must be 0 or more, such as 5m")
    return seconds
