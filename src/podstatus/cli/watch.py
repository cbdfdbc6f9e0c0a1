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
from podstatus.cli.client.agent_client import find_agent
from podstatus.cli.client.api_server import RequestError, current_time
from podstatus.cli.client.pod_feed import PodChange, PodFeed
from podstatus.cli.client.query_client import QueryClient
from podstatus.cli.client.sse import SseEvent, SseLineTooLongError
from podstatus.cli.client.staleness import Staleness
from podstatus.cli.get import (
    AllNamespacesOption,
    NamespaceOption,
    OutputFormat,
    OutputOption,
    RootDirOption,
    report_errors,
    usage_error,
)
from podstatus.cli.render.pod_rows import pod_table
from podstatus.cli.render.styled_text import Line, Piece
from podstatus.cli.render.table_lines import count_health, table_lines
from podstatus.cli.render.tables import Table
from podstatus.cli.terminal import print_table, redraw, write, write_json_line, write_yaml
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.health import pod_health
from podstatus.web.v1.wire import DeletedEvent, PodView

_RECONNECT_SECONDS = 1.0
_RECONNECT_TIMEOUT_SECONDS = 60.0
"""For an agent that is restarted."""
_REDRAW_SECONDS = 0.2
_TICK_SECONDS = 1.0
"""Ages grow without anybody saying so."""
_MAX_QUEUED = 1000
_MIN_WIDTHS = {
    "NAMESPACE": len("kube-system"),
    "NAME": 16,
    "STATUS": len("ContainerCreating"),
    "AGE": len("2d23h"),
    "HEALTH": len("crashing"),
    "IP": len("192.168.100.100"),
}
"""Of columns whose next text nobody knows: so that lines are seldom wider than those above."""

KindArgument = Annotated[str, typer.Argument(metavar="[pods]", help="What to watch: pods.")]
SelectorOption = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Pods with labels like these.")
]


def watch(
    kind: KindArgument = "pods",
    *,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    output: OutputOption = None,
    root_dir: RootDirOption = None,
) -> None:
    """Show the pods of this node (or cluster), and how they are, as they change, until interrupted.

    A terminal shows a table that is drawn again; a file or a pipe gets a line for each change.
    """
    if kind not in ("pods", "pod", "po"):
        usage_error(f"{kind!r} cannot be watched; pods can; for all else use kubectl get --watch")
    query = {} if all_namespaces else {"namespace": namespace or "default"}
    if selector:
        query["labelSelector"] = selector
    with report_errors():
        columns = _Columns(
            wide=output is OutputFormat.WIDE,
            namespaces=all_namespaces,
            nodes=find_agent(root_dir, os.environ).is_observer,
        )
        sent = _follow(root_dir, query)
        drawn = sys.stdout.isatty() and output in (None, OutputFormat.WIDE)
        tell = _ignore_staleness if drawn else _print_staleness
        silence = Staleness(lambda: find_agent(root_dir, os.environ), tell)
        with silence.polling() if columns.nodes else nullcontext():
            if drawn:
                _draw(sent, columns, silence)
            else:
                _print(sent, output, columns)


class _Columns(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a pod."""

    wide: bool
    namespaces: bool
    nodes: bool

    def table(self, pods: Iterable[PodView], now: Time) -> Table:
        return pod_table(pods, now, wide=self.wide, namespaces=self.namespaces, nodes=self.nodes)


def _follow(root_dir: Path | None, query: Mapping[str, str]) -> Iterator[SseEvent]:
    """All events, also of an agent that is started again; an empty one when it is away.

    Raises CannotAskError if it was never there, or does not come back.
    """
    last, deadline = "", 0.0
    while True:
        try:
            port = QueryClient(find_agent(root_dir, os.environ))
            for sent in port.watch(query, last):
                last, deadline = sent.id or last, time.monotonic() + _RECONNECT_TIMEOUT_SECONDS
                yield sent
        except (RequestError, SseLineTooLongError) as error:
            if time.monotonic() > deadline:
                raise RequestError(str(error)) from error
            yield SseEvent(event="away", data=str(error))
        time.sleep(_RECONNECT_SECONDS)


def _print(events: Iterator[SseEvent], output: OutputFormat | None, columns: _Columns) -> None:
    """A line for each change; what is there at first comes at once."""
    watched, lines = PodFeed(), _LinePrinter(output, columns)
    held: list[PodChange] = []
    is_away = False
    for event in events:
        if is_away != (event.event == "away"):
            is_away = not is_away
            told = "away, waiting for it" if is_away else "there again"
            write(f"podstatus: the agent is {told}\n", err=True)
        held += watched.apply(event)
        if watched.is_synced and held:
            lines.show(held)
            held.clear()


class _LinePrinter:
    """Lines of a table that has no end, or what other programs read."""

    def __init__(self, output: OutputFormat | None, columns: _Columns) -> None:
        self._output = output
        self._columns = columns
        self._widths: list[int] = []

    def show(self, changes: Sequence[PodChange]) -> None:
        if self._output in (None, OutputFormat.WIDE):
            self._rows(changes)
            return
        for change in changes:
            match self._output:
                case OutputFormat.NAME:
                    write(f"pod/{change.name}\n")
                case OutputFormat.JSON:
                    write_json_line({_kind(change): change})
                case _:
                    write_yaml({_kind(change): change}, one_of_many=True)

    def _rows(self, changes: Sequence[PodChange]) -> None:
        tables = [self._table(change) for change in changes]
        table = Table(tables[0].headings, tuple(row for it in tables for row in it.rows))
        above = bool(self._widths)
        least = self._widths or [_MIN_WIDTHS.get(name, 0) for name in table.headings]
        self._widths = [max(pair) for pair in zip(least, table.widths(), strict=True)]
        print_table(table, headings=not above, min_widths=self._widths)

    def _table(self, change: PodChange) -> Table:
        pods = [] if isinstance(change, DeletedEvent) else [change]
        table = self._columns.table(pods, current_time())
        return _deleted_row(table, change) if isinstance(change, DeletedEvent) else table


def _kind(change: PodChange) -> str:
    return "deleted" if isinstance(change, DeletedEvent) else "pod"


def _deleted_row(table: Table, pod: DeletedEvent) -> Table:
    told = {"NAMESPACE": pod.namespace, "NAME": pod.name, "STATUS": "gone"}
    return Table(table.headings, (tuple(told.get(name, "") for name in table.headings),))


def _print_staleness(message: str) -> None:
    write(f"podstatus: {message or 'API server is heard again'}\n", err=True)


def _ignore_staleness(_: str) -> None:
    """It is in the last line, drawn again and again."""


def _draw(events: Iterator[SseEvent], columns: _Columns, staleness: Staleness) -> None:
    """A table that is drawn again when something changes, but not all the time."""
    waiting: queue.Queue[SseEvent | Exception] = queue.Queue(_MAX_QUEUED)
    threading.Thread(target=_enqueue_events, args=(events, waiting), daemon=True).start()
    watched, away = PodFeed(), ""
    while True:
        for event in _batch(waiting):
            away = event.data if event.event == "away" else ""
            watched.apply(event)
        if watched.is_synced or away:
            redraw(_render_page(watched, away, staleness.text, columns))


def _enqueue_events(events: Iterator[SseEvent], to: "queue.Queue[SseEvent | Exception]") -> None:
    try:
        for event in events:
            to.put(event)
    except RequestError as error:
        to.put(error)


def _batch(waiting: "queue.Queue[SseEvent | Exception]") -> list[SseEvent]:
    """What comes within a while, after the first. Raises CannotAskError."""
    batch: list[SseEvent] = []
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


def _render_page(feed: PodFeed, away: str, staleness: str, columns: _Columns) -> list[Line]:
    size, now = shutil.get_terminal_size(), current_time()
    # A pod gets stuck by time alone, of which nobody sends word.
    pods = [structs.replace(pod, health=pod_health(pod, now)) for pod in feed.pods()]
    table = columns.table(pods, now)
    count = count_health(pods)
    if away:
        foot = f"{count}; the agent is away: {escape_control_chars(away)}"
    else:
        # First, where it is not cut off: all else is as old as that.
        foot = f"{staleness}; {count}" if staleness else f"{count}; at {now.wire}"
    return [
        *table_lines(table, size.columns, size.lines - 2),
        (Piece(foot[: size.columns], "dim"),),
    ]
