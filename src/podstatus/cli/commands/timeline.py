"""`podstatus timeline`: draw the history of a pod or node, from the running agent."""

from enum import StrEnum
from typing import Annotated

import typer

from podstatus.cli.completion import complete_timeline
from podstatus.cli.errors import report_errors
from podstatus.cli.options import (
    NODE_KINDS,
    NamespaceOption,
    RootDirOption,
    parse_pod_name,
    parse_positive_duration,
    within,
)


class TimelineFormat(StrEnum):
    """The output formats of history entries."""

    JSON = "json"
    YAML = "yaml"


SubjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="POD|node/NAME",
        help="Name of the pod, or of the node after node/.",
        autocompletion=complete_timeline,
    ),
]
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
    subject: SubjectArgument,
    *,
    namespace: NamespaceOption = None,
    since: SinceOption = "",
    width: WidthOption = 0,
    list_: ListOption = False,
    output: OutputOption = None,
    root_dir: RootDirOption = None,
) -> None:
    """Draw the recorded history of a pod or node.

    Of a pod: phases, conditions, containers, restarts and events. Of a node: conditions, taints,
    starts and stops of its agent, load and events. Deleted ones are included until their history
    expires. Times are in UTC.
    """
    seconds = parse_positive_duration(since, "--since") if since else 0.0
    kind, _, node = subject.partition("/")
    pod = "" if kind.lower() in NODE_KINDS and node else parse_pod_name(subject)
    from podstatus.cli.node_timeline import NodeHistory
    from podstatus.cli.timeline_page import PodHistory, draw_page, print_entries, print_list

    with report_errors():
        history = (
            PodHistory.read(root_dir, namespace or "default", pod, seconds)
            if pod
            else NodeHistory.read(root_dir, node, seconds)
        )
        if output is not None:
            print_entries(history, as_json=output is TimelineFormat.JSON)
        elif list_:
            print_list(history)
        else:
            draw_page(history, width)
