"""`podstatus watch`: pods as they change, from the running agent, without the API server."""

import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import structs

from podstatus.base.terminal import escape_control_chars
from podstatus.cli.client.agent_client import find_node
from podstatus.cli.client.api_server import CannotAskError, wall_time
from podstatus.cli.client.pod_feed import Change, GonePod, Watched
from podstatus.cli.client.query_client import QueryPort, ShownPod
from podstatus.cli.client.sse import ServerSent, TooLongError
from podstatus.cli.client.staleness import Silence
from podstatus.cli.get import (
    AllNamespaces,
    Format,
    Namespace,
    Output,
    RootDir,
    complaining,
    mistaken,
)
from podstatus.cli.render.pod_rows import pod_table
from podstatus.cli.render.styled_text import Line, Piece
from podstatus.cli.render.table_lines import count_health, table_lines
from podstatus.cli.render.tables import Table
from podstatus.cli.terminal import print_table, redraw, show, show_json_line, show_yaml
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.health import pod_health

_AGAIN_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0
"""For an agent that is restarted."""
_REDRAW_SECONDS = 0.2
_TICK_SECONDS = 1.0
"""Ages grow without anybody saying so."""
_MOST_WAITING = 1000
_LEAST_WIDTHS = {
    "NAMESPACE": len("kube-system"),
    "NAME": 16,
    "STATUS": len("ContainerCreating"),
    "AGE": len("2d23h"),
    "HEALTH": len("crashing"),
    "IP": len("192.168.100.100"),
}
"""Of columns whose next text nobody knows: so that lines are seldom wider than those above."""

Kind = Annotated[str, typer.Argument(metavar="[pods]", help="What to watch: pods.")]
Selector = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Pods with labels like these.")
]


def watch(
    kind: Kind = "pods",
    *,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    output: Format = None,
    root_dir: RootDir = None,
) -> None:
    """Show the pods of this node (or cluster), and how they are, as they change, until interrupted.

    A terminal shows a table that is drawn again; a file or a pipe gets a line for each change.
    """
    if kind not in ("pods", "pod", "po"):
        mistaken(f"{kind!r} cannot be watched; pods can; for all else use kubectl get --watch")
    query = {} if all_namespaces else {"namespace": namespace or "default"}
    if selector:
        query["labelSelector"] = selector
    with complaining():
        columns = _Columns(
            wide=output is Output.WIDE,
            namespaces=all_namespaces,
            nodes=find_node(root_dir, os.environ).observes,
        )
        sent = _follow(root_dir, query)
        drawn = sys.stdout.isatty() and output in (None, Output.WIDE)
        tell = _draw_silence if drawn else _print_silence
        silence = Silence(lambda: find_node(root_dir, os.environ), tell)
        with silence.asked() if columns.nodes else nullcontext():
            if drawn:
                _draw(sent, columns, silence)
            else:
                _print(sent, output, columns)


class _Columns(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a pod."""

    wide: bool
    namespaces: bool
    nodes: bool

    def table(self, pods: Iterable[ShownPod], now: Time) -> Table:
        return pod_table(pods, now, wide=self.wide, namespaces=self.namespaces, nodes=self.nodes)


def _follow(root_dir: Path | None, query: Mapping[str, str]) -> Iterator[ServerSent]:
    """All events, also of an agent that is started again; an empty one when it is away.

    Raises CannotAskError if it was never there, or does not come back.
    """
    last, deadline = "", 0.0
    while True:
        try:
            port = QueryPort(find_node(root_dir, os.environ))
            for sent in port.watch(query, last):
                last, deadline = sent.id or last, time.monotonic() + _PATIENCE_SECONDS
                yield sent
        except (CannotAskError, TooLongError) as error:
            if time.monotonic() > deadline:
                raise CannotAskError(str(error)) from error
            yield ServerSent(event="away", data=str(error))
        time.sleep(_AGAIN_SECONDS)


def _print(sent: Iterator[ServerSent], output: Output | None, columns: _Columns) -> None:
    """A line for each change; what is there at first comes at once."""
    watched, lines = Watched(), _Lines(output, columns)
    held: list[Change] = []
    is_away = False
    for event in sent:
        if is_away != (event.event == "away"):
            is_away = not is_away
            told = "away, waiting for it" if is_away else "there again"
            show(f"podstatus: the agent is {told}\n", err=True)
        held += watched.apply(event)
        if watched.is_complete and held:
            lines.show(held)
            held.clear()


class _Lines:
    """Lines of a table that has no end, or what other programs read."""

    def __init__(self, output: Output | None, columns: _Columns) -> None:
        self._output = output
        self._columns = columns
        self._least: list[int] = []

    def show(self, changes: Sequence[Change]) -> None:
        if self._output in (None, Output.WIDE):
            self._rows(changes)
            return
        for change in changes:
            match self._output:
                case Output.NAME:
                    show(f"pod/{change.name}\n")
                case Output.JSON:
                    show_json_line({_kind(change): change})
                case _:
                    show_yaml({_kind(change): change}, one_of_many=True)

    def _rows(self, changes: Sequence[Change]) -> None:
        tables = [self._table(change) for change in changes]
        table = Table(tables[0].headings, tuple(row for it in tables for row in it.rows))
        above = bool(self._least)
        least = self._least or [_LEAST_WIDTHS.get(name, 0) for name in table.headings]
        self._least = [max(pair) for pair in zip(least, table.widths(), strict=True)]
        print_table(table, headings=not above, least=self._least)

    def _table(self, change: Change) -> Table:
        pods = [] if isinstance(change, GonePod) else [change]
        table = self._columns.table(pods, wall_time())
        return _gone_row(table, change) if isinstance(change, GonePod) else table


def _kind(change: Change) -> str:
    return "gone" if isinstance(change, GonePod) else "pod"


def _gone_row(table: Table, gone: GonePod) -> Table:
    told = {"NAMESPACE": gone.namespace, "NAME": gone.name, "STATUS": "gone"}
    return Table(table.headings, (tuple(told.get(name, "") for name in table.headings),))


def _print_silence(silence: str) -> None:
    show(f"podstatus: {silence or 'API server is heard again'}\n", err=True)


def _draw_silence(_: str) -> None:
    """It is in the last line, drawn again and again."""


def _draw(sent: Iterator[ServerSent], columns: _Columns, silence: Silence) -> None:
    """A table that is drawn again when something changes, but not all the time."""
    waiting: queue.Queue[ServerSent | Exception] = queue.Queue(_MOST_WAITING)
    threading.Thread(target=_hand_over, args=(sent, waiting), daemon=True).start()
    watched, away = Watched(), ""
    while True:
        for event in _batch(waiting):
            away = event.data if event.event == "away" else ""
            watched.apply(event)
        if watched.is_complete or away:
            redraw(_page(watched, away, silence.text, columns))


def _hand_over(sent: Iterator[ServerSent], to: "queue.Queue[ServerSent | Exception]") -> None:
    try:
        for event in sent:
            to.put(event)
    except CannotAskError as error:
        to.put(error)


def _batch(waiting: "queue.Queue[ServerSent | Exception]") -> list[ServerSent]:
    """What comes within a while, after the first. Raises CannotAskError."""
    batch: list[ServerSent] = []
    deadline = time.monotonic() + _TICK_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            found = waiting.get(timeout=left)
        except queue.Empty:
            break
        if isinstance(found, Exception):
            raise found
        batch.append(found)
        deadline = (
            min(deadline, time.monotonic() + _REDRAW_SECONDS) if len(batch) == 1 else deadline
        )
    return batch


def _page(watched: Watched, away: str, silence: str, columns: _Columns) -> list[Line]:
    size, now = shutil.get_terminal_size(), wall_time()
    # A pod gets stuck by time alone, of which nobody sends word.
    pods = [structs.replace(pod, health=pod_health(pod, now)) for pod in watched.pods()]
    table = columns.table(pods, now)
    count = count_health(pods)
    if away:
        foot = f"{count}; the agent is away: {escape_control_chars(away)}"
    else:
        # First, where it is not cut off: all else is as old as that.
        foot = f"{silence}; {count}" if silence else f"{count}; at {now.wire}"
    return [
        *table_lines(table, size.columns, size.lines - 2),
        (Piece(foot[: size.columns], "dim"),),
    ]
