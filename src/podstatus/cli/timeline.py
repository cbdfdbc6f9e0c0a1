"""`podstatus timeline`: what happened to a pod, drawn, from the history of the running agent."""

import os
import shlex
from enum import StrEnum
from typing import Annotated

import typer
from msgspec import structs

from podstatus.base.terminal import escape_control_chars
from podstatus.cli.client.agent_client import find_agent
from podstatus.cli.client.api_server import current_time
from podstatus.cli.client.query_client import QueryClient, to_history_entry
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.completion import complete_pod
from podstatus.cli.get import NamespaceOption, RootDirOption, report_errors, usage_error
from podstatus.cli.render.styled_text import Line, Piece
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
from podstatus.cli.timeline_view.event_lines import event_digest, event_list
from podstatus.cli.timeline_view.intervals import build_chart
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.transitions.status_transitions import FINISHED
from podstatus.web.v1.wire import PodView, TransitionsResponse

_SECOND = 1_000_000_000
_MAX_LISTED = 30
"""Of what happened at once, below the drawing: what a person reads."""


class TimelineFormat(StrEnum):
    """How moments are printed."""

    JSON = "json"
    YAML = "yaml"


PodNameArgument = Annotated[
    str,
    typer.Argument(metavar="POD", help="What happened to this one.", autocompletion=complete_pod),
]
SinceOption = Annotated[
    str, typer.Option(metavar="DURATION", help="Only what is newer, such as 5s, 2m or 3h.")
]
WidthOption = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=1000, help="Columns, 40 at least; 0: those of the terminal."
    ),
]
ListOption = Annotated[bool, typer.Option("--list", help="Every moment on a line, and no drawing.")]
OutputOption = Annotated[
    TimelineFormat | None, typer.Option("--output", "-o", metavar="json|yaml", help="In this form.")
]


def timeline(
    pod: PodNameArgument,
    *,
    namespace: NamespaceOption = None,
    since: SinceOption = "",
    width: WidthOption = 0,
    list_: ListOption = False,
    output: OutputOption = None,
    root_dir: RootDirOption = None,
) -> None:
    """Draw what happened to a pod: phases, conditions, containers, restarts and events.

    It comes from the history of the agent, which also has pods that are gone; times are UTC.
    """
    seconds = _parse_since(since) if since else 0.0
    with report_errors():
        node, where = find_agent(root_dir, os.environ), namespace or "default"
        port = QueryClient(node)
        warn_if_stale(node)
        happened = port.timeline(where, pod)
        now = current_time().unix_nanos()
        begin = now - round(seconds * _SECOND) if seconds else None
        if output is not None:
            _print(_filter_since(happened, begin), output)
            return
        moments = [to_history_entry(shown) for shown in happened.transitions]
        if list_:
            write_lines(event_list([m for m in moments if m.at >= (begin or 0)], arrow=_arrow()))
        else:
            health = port.pod(where, pod)
            write_lines(
                _render_page(where, pod, moments, health, begin, now, terminal_width(width))
            )
        if lost := happened.history.overflowed + happened.history.lost_events:
            write(
                f"podstatus: {lost} changes found the history too busy; some are missing\n",
                err=True,
            )


def _render_page(
    namespace: str,
    name: str,
    moments: list[HistoryEntry],
    pod: PodView | None,
    begin: int | None,
    now: int,
    width: int,
) -> list[Line]:
    signs = BLOCKS if can_encode(BLOCKS.all) else ASCII
    start = begin if begin is not None else moments[0].at if moments else now
    end = max(_end(moments, now, is_gone=pod is None), start + _SECOND)
    drawn = build_chart(moments, begin=start, end=end)
    listed = [moment for moment in moments if moment.at >= start]
    elsewhere = (*drawn.always_true, *drawn.same_as_ready)
    below = event_digest(listed, width=width, symbols=signs, omitted_conditions=elsewhere)
    return [
        *_head(namespace, name, pod, width),
        *draw_timeline(drawn, width, signs),
        (),
        *_omitted_line(name, namespace, len(below) - _MAX_LISTED),
        *(line for lines in below[-_MAX_LISTED:] for line in lines),
    ]


def _head(namespace: str, name: str, pod: PodView | None, width: int) -> list[Line]:
    told = f"{namespace}/{name} is gone."
    if pod is not None:
        told = f"{namespace}/{name} is {pod.health.state.value}. {pod.health.message}"
    return [
        (Piece(line, "bold"),)
        for line in wrap_text(escape_control_chars(" ".join(told.split())), width)
    ]


def _omitted_line(name: str, namespace: str, count: int) -> list[Line]:
    if count <= 0:
        return []
    where = "" if namespace == "default" else f" -n {shlex.quote(namespace)}"
    told = f"({count} lines before that: podstatus timeline {shlex.quote(name)}{where} --list)"
    return [(Piece(escape_control_chars(told), "dim"),)]


def _end(moments: list[HistoryEntry], now: int, *, is_gone: bool) -> int:
    """Now, unless all ended before, or went while no agent was there."""
    if moments and (is_gone or moments[-1].transition.kind == FINISHED):
        return moments[-1].at
    return max(now, moments[-1].at) if moments else now


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


def _parse_since(since: str) -> float:
    try:
        seconds = parse_duration(since)
    except DurationError as error:
        usage_error(f"--since: {error}")
    if seconds <= 0:
        usage_error("--since must be greater than 0, such as 5m")
    return seconds
