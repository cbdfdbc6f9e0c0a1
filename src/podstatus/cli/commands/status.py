"""`podstatus status`: whether the agent runs, and how it is."""

from enum import StrEnum
from typing import Annotated

import typer

from podstatus.cli.errors import report_errors
from podstatus.cli.options import RootDirOption


class StatusFormat(StrEnum):
    """The output formats of the state of an agent."""

    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    StatusFormat | None,
    typer.Option("--output", "-o", metavar="json|yaml", help="Output format."),
]


def status(*, root_dir: RootDirOption = None, output: OutputOption = None) -> None:
    """Show whether the agent is running, its health and its restarts.

    Also shows the API server and whether it answers, the node, pods by health, and the statuses
    that the API server has not acknowledged.
    """
    from podstatus.cli.agent_status import print_status

    with report_errors():
        is_healthy = print_status(root_dir, output)
    if not is_healthy:
        raise typer.Exit(1)
