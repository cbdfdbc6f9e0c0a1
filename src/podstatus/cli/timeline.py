"""`podstatus timeline`: draw the history of a pod, from the running agent."""

import os
import shlex
from enum import StrEnum
from typing import Annotated

import typer
from msgspec import structs
from rich.text import Text

from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.query_api_client import QueryClient, to_history_entry
from podstatus.cli.client.server_objects import current_time
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.errors import report_errors
from podstatus.cli.options import (
    NamespaceOption,
    PodArgument,
    RootDirOption,
    parse_positive_duration,
)
from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.terminal import (
    can_encode,
    terminal_width,
    write,
    write_json,
    write_lines,
    write_yaml,
)
from podstatus.cli.timeline_view.chart import ASCII, BLOCKS, draw_timeline
from podstatus.cli.timeline_view.event_lines import event_digest, event_list, to_single_line
from podstatus.cli.timeline_view.intervals import build_chart
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.transitions.compare_statuses import FINISHED
from podstatus.web.v1.wire import PodView, TransitionsResponse

_SECOND = 1_000_000_000
_MAX_LISTED = 30
"""Maximum lines of the digest below the chart."""


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
        min=0,
        max=1000,
        help="Width of the chart in columns, 40 to 1000; 0 uses the width of the terminal.",
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
    with report_errors():
        agent, where = find_agent(root_dir, os.environ), namespace or "default"
        client = QueryClient(agent)
        warn_if_stale(agent)
        response = client.timeline(where, pod)
        now = current_time().unix_nanos()
        begin = now - round(seconds * _SECOND) if seconds else None
        if output is not None:
            _print(_filter_since(response, begin), output)
            return
        entries = [to_history_entry(it) for it in response.transitions]
        if list_:
            write_lines(event_list([e for e in entries if e.at >= (begin or 0)], arrow=_arrow()))
        else:
            current = client.pod(where, pod)
            write_lines(
                _render_page(where, pod, entries, current, begin, now, terminal_width(width))
            )
        if lost := response.history.overflowed + response.history.lost_events:
            write(
                f"podstatus: the history queue overflowed by {lost} changes; entries are missing\n",
                err=True,
            )


def _render_page(
    namespace: str,
    name: str,
    entries: list[HistoryEntry],
    pod: PodView | None,
    begin: int | None,
    now: int,
    width: int,
) -> list[Text]:
    symbols = BLOCKS if can_encode(BLOCKS.all) else ASCII
    start = begin if begin is not None else entries[0].at if entries else now
    end = max(_end(entries, now, is_deleted=pod is None), start + _SECOND)
    chart = build_chart(entries, begin=start, end=end)
    recent = [entry for entry in entries if entry.at >= start]
    without_row = (*chart.always_true, *chart.same_as_ready)
    digest = event_digest(recent, width=width, symbols=symbols, omitted_conditions=without_row)
    return [
        *_head(namespace, name, pod, width),
        *draw_timeline(chart, width, symbols),
        Text(),
        *_omitted_line(name, namespace, len(digest) - _MAX_LISTED),
        *(line for lines in digest[-_MAX_LISTED:] for line in lines),
    ]


def _head(namespace: str, name: str, pod: PodView | None, width: int) -> list[Text]:
    text = f"{namespace}/{name} is deleted."
    if pod is not None:
        text = f"{namespace}/{name} is {pod.health.state.value}. {pod.health.message}"
    return [Text(line, "bold") for line in wrap_text(to_single_line(text), width)]


def _omitted_line(name: str, namespace: str, count: int) -> list[Text]:
    if count <= 0:
        return []
    where = "" if namespace == "default" else f" -n {shlex.quote(namespace)}"
    text = f"({count} earlier lines: podstatus timeline {shlex.quote(name)}{where} --list)"
    return [Text(escape_control_chars(text), "dim")]


def _end(entries: list[HistoryEntry], now: int, *, is_deleted: bool) -> int:
    """The last entry of a pod that is finished or was deleted without an agent, else `now`."""
    if entries and (is_deleted or entries[-1].transition.kind == FINISHED):
        return entries[-1].at
    return max(now, entries[-1].at) if entries else now


def _arrow() -> str:
    return "→" if can_encode("→") else "->"


def _filter_since(items: TransitionsResponse, begin: int | None) -> TransitionsResponse:
    if begin is None:
        return items
    newer = tuple(it for it in items.transitions if to_history_entry(it).at >= begin)
    return structs.replace(items, transitions=newer)


def _print(items: TransitionsResponse, output_format: TimelineFormat) -> None:
    if output_format is TimelineFormat.JSON:
        write_json(items)
    else:
        write_yaml(items)
