"""`podstatus timeline`: draw the history of a pod, from the running agent."""

from enum import StrEnum
from typing import Annotated

import typer

from podstatus.cli.errors import report_errors
from podstatus.cli.options import (
    NamespaceOption,
    PodArgument,
    RootDirOption,
    parse_positive_duration,
    within,
)


class TimelineFormat(StrEnum):
    """The output formats of history entries."""

    JSON = "json"
    YAML = "yaml"


SinceOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Show only entries newer than a relative duration, such as 5s, 2m or 3h.",
    ),
]
WidthOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=within(0, 1000),
        help="Width of the chart in columns, from 40 to 1000. Default: that of the terminal.",
        show_default=False,
    ),
]
ListOption = Annotated[
    bool, typer.Option("--list", help="Print one entry per line instead of a chart.")
]
OutputOption = Annotated[
    TimelineFormat | None,
    typer.Option("--output", "-o", metavar="json|yaml", help="Output format."),
]


def timeline(
    pod: PodArgument,
    *,
    namespace: NamespaceOption = None,
    since: SinceOption = "",
    width: WidthOption = 0,
    list_: ListOption = False,
    output: OutputOption = None,
    root_dir: RootDirOption = None,
) -> None:
    """Draw the recorded history of a pod.

    Shows phases, conditions, containers, restarts and events on one time axis. Deleted pods are
    included until their history expires. Times are in UTC.
    """
    seconds = parse_positive_duration(since, "--since") if since else 0.0
    from podstatus.cli.timeline_page import draw_page, print_entries, print_list, read_history

    with report_errors():
        history = read_history(root_dir, namespace or "default", pod, seconds)
        if output is not None:
            print_entries(history, as_json=output is TimelineFormat.JSON)
        elif list_:
            print_list(history)
        else:
            draw_page(history, width)
