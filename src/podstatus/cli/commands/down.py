"""`podstatus down`: delete all pods of a node and stop its agent."""

from typing import Annotated

import typer

from podstatus.cli.errors import report_errors
from podstatus.cli.options import RootDirOption, within

GracePeriodOption = Annotated[
    int,
    typer.Option(
        metavar="SECONDS",
        callback=within(-1),
        help="Time for each pod to terminate gracefully. Default: that of the pod; if no agent "
        "runs, 30.",
        show_default=False,
    ),
]
RemoveFilesOption = Annotated[
    bool,
    typer.Option(
        "--remove-files",
        help="Also remove what the agent has written to the root directory: objects, history, "
        "logs, certificates.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def down(
    *,
    root_dir: RootDirOption = None,
    grace_period: GracePeriodOption = -1,
    remove_files: RemoveFilesOption = False,
    yes: YesOption = False,
) -> None:
    """Delete all pods, terminate their containers and stop the agent.

    Also terminates containers left by a stopped or killed agent, if --root-dir names its directory.
    Refuses to end pods of an external cluster: start the agent again, then use podstatus drain.
    """
    from podstatus.cli.actions.take_down import DownOptions, take_down

    options = DownOptions(
        grace_seconds=None if grace_period < 0 else grace_period,
        remove_files=remove_files,
        assume_yes=yes,
    )
    with report_errors():
        take_down(root_dir, options)
