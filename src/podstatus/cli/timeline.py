"""`podstatus timeline`: what happened to a pod, drawn, from the history of the running agent."""

import os
import shlex
from enum import StrEnum
from typing import Annotated

import typer

from podstatus.base.terminal import escape_control_chars
from podstatus.cli.client.agent_client import find_node
from podstatus.cli.client.api_server import wall_time
from podstatus.cli.client.query_client import Happened, QueryPort, ShownPod, to_moment
from podstatus.cli.client.staleness import tell_silence
from podstatus.cli.completion import complete_pod
from podstatus.cli.get import Namespace, RootDir, complaining, mistaken
from podstatus.cli.render.styled_text import Line, Piece
from podstatus.cli.render.wrap import fold
from podstatus.cli.terminal import can_show, screen_width, show, show_json, show_lines, show_yaml
from podstatus.cli.timeline_view.chart import ASCII, BLOCKS, draw_timeline
from podstatus.cli.timeline_view.event_lines import digest_moments, list_moments
from podstatus.cli.timeline_view.intervals import chart
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.observe.history.store import Moment
from podstatus.observe.transitions.status_transitions import FINISHED

_SECOND = 1_000_000_000
_MOST_LISTED = 30
"""Of what happened at once, below the drawing: what a person reads."""


class Form(StrEnum):
    """How moments are printed."""

    JSON = "json"
    YAML = "yaml"


PodName = Annotated[
    str,
    typer.Argument(metavar="POD", help="What happened to this one.", autocompletion=complete_pod),
]
Since = Annotated[
    str, typer.Option(metavar="DURATION", help="Only what is newer, such as 5s, 2m or 3h.")
]
Width = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=1000, help="Columns, 40 at least; 0: those of the terminal."
    ),
]
List = Annotated[bool, typer.Option("--list", help="Every moment on a line, and no drawing.")]
Format = Annotated[
    Form | None, typer.Option("--output", "-o", metavar="json|yaml", help="In this form.")
]


def timeline(
    pod: PodName,
    *,
    namespace: Namespace = None,
    since: Since = "",
    width: Width = 0,
    list_: List = False,
    output: Format = None,
    root_dir: RootDir = None,
) -> None:
    """Draw what happened to a pod: phases, conditions, containers, restarts and events.

    It comes from the history of the agent, which also has pods that are gone; times are UTC.
    """
    seconds = _seconds(since) if since else 0.0
    with complaining():
        node, where = find_node(root_dir, os.environ), namespace or "default"
        port = QueryPort(node)
        tell_silence(node)
        happened = port.timeline(where, pod)
        now = wall_time().unix_nanos()
        begin = now - round(seconds * _SECOND) if seconds else None
        if output is not None:
            _print(_newer(happened, begin), output)
            return
        moments = [to_moment(shown) for shown in happened.moments]
        if list_:
            show_lines(list_moments([m for m in moments if m.at >= (begin or 0)], arrow=_arrow()))
        else:
            health = port.pod(where, pod)
            show_lines(_page(where, pod, moments, health, begin, now, screen_width(width)))
        if lost := happened.history.overflowed + happened.history.lost_events:
            show(
                f"podstatus: {lost} changes found the history too busy; some are missing\n",
                err=True,
            )


def _page(
    namespace: str,
    name: str,
    moments: list[Moment],
    pod: ShownPod | None,
    begin: int | None,
    now: int,
    width: int,
) -> list[Line]:
    signs = BLOCKS if can_show(BLOCKS.all) else ASCII
    start = begin if begin is not None else moments[0].at if moments else now
    end = max(_end(moments, now, is_gone=pod is None), start + _SECOND)
    drawn = chart(moments, begin=start, end=end)
    listed = [moment for moment in moments if moment.at >= start]
    elsewhere = (*drawn.throughout, *drawn.as_ready)
    below = digest_moments(listed, width=width, signs=signs, without=elsewhere)
    return [
        *_head(namespace, name, pod, width),
        *draw_timeline(drawn, width, signs),
        (),
        *_left_out(name, namespace, len(below) - _MOST_LISTED),
        *(line for lines in below[-_MOST_LISTED:] for line in lines),
    ]


def _head(namespace: str, name: str, pod: ShownPod | None, width: int) -> list[Line]:
    told = f"{namespace}/{name} is gone."
    if pod is not None:
        told = f"{namespace}/{name} is {pod.health.word.value}. {pod.health.sentence}"
    return [
        (Piece(line, "bold"),) for line in fold(escape_control_chars(" ".join(told.split())), width)
    ]


def _left_out(name: str, namespace: str, count: int) -> list[Line]:
    if count <= 0:
        return []
    where = "" if namespace == "default" else f" -n {shlex.quote(namespace)}"
    told = f"({count} lines before that: podstatus timeline {shlex.quote(name)}{where} --list)"
    return [(Piece(escape_control_chars(told), "dim"),)]


def _end(moments: list[Moment], now: int, *, is_gone: bool) -> int:
    """Now, unless all ended before, or went while no agent was there."""
    if moments and (is_gone or moments[-1].transition.kind == FINISHED):
        return moments[-1].at
    return max(now, moments[-1].at) if moments else now


def _arrow() -> str:
    return "→" if can_show("→") else "->"


def _newer(happened: Happened, begin: int | None) -> Happened:
    if begin is None:
        return happened
    newer = tuple(shown for shown in happened.moments if to_moment(shown).at >= begin)
    return Happened(newer, happened.history)


def _print(happened: Happened, form: Form) -> None:
    if form is Form.JSON:
        show_json(happened)
    else:
        show_yaml(happened)


def _seconds(since: str) -> float:
    try:
        seconds = parse_duration(since)
    except DurationError as error:
        mistaken(f"--since: {error}")
    if seconds <= 0:
        mistaken("--since must be greater than 0, such as 5m")
    return seconds
