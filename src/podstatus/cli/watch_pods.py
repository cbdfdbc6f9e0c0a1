"""Follow the pods of the running agent for `podstatus watch`, as a table or line by line."""

import os
import queue
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec
from msgspec import structs
from rich.text import Text

from podstatus.apiserver.printing.pods import pod_cells
from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.node_loads import NodePoller
from podstatus.cli.client.pod_feed import PodChange, PodFeed
from podstatus.cli.client.pod_from_summary import pod_from_summary
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.server_objects import current_time
from podstatus.cli.client.sse import SseEvent, SseLineTooLongError
from podstatus.cli.client.staleness import Staleness
from podstatus.cli.document_output import write_json_line, write_yaml
from podstatus.cli.errors import warn
from podstatus.cli.options import OutputFormat
from podstatus.cli.render.node_load import nodes_line
from podstatus.cli.render.table_layout import TableLayout, shorten_columns
from podstatus.cli.render.tables import MESSAGE_HEADING, Table
from podstatus.cli.styled_output import TablePrinter, redraw
from podstatus.cli.terminal import exit_with_reader, write
from podstatus.kube.scalars.time import Time
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.health import pod_health
from podstatus.web.v1.wire import DeletedEvent, PodView

_RECONNECT_SECONDS = 1.0
_RECONNECT_TIMEOUT_SECONDS = 60.0
"""How long to wait for an agent that is being restarted."""
_REDRAW_SECONDS = 0.2
_TICK_SECONDS = 1.0
"""Redraw at least this often, since ages grow without events."""
_MAX_QUEUED = 1000
_HEADINGS = ("NAME", "READY", "STATUS", "RESTARTS", "AGE", "HEALTH")
_MIN_WIDTHS = {
    "NAMESPACE": len("kube-system"),
    "NAME": 16,
    "STATUS": len("ContainerCreating"),
    "RESTARTS": len("3 (21s ago)"),
    "AGE": len("2d23h"),
    "HEALTH": len("crashing"),
    "IP": len("192.168.100.100"),
}
"""Minimum column widths, so that later rows rarely need wider columns than the rows above."""
_SHORTENED_WIDTHS = {heading: _MIN_WIDTHS[heading] for heading in ("NAME", "NAMESPACE")}
"""How far names are shortened on a screen, where a pod should take one line."""


def watch_pods(
    root_dir: Path | None,
    query: Mapping[str, str],
    output: OutputFormat | None,
    *,
    namespaces: bool,
) -> None:
    """Print the pods of the query and their changes, without end. Raises RequestError."""
    columns = Columns(
        wide=output is OutputFormat.WIDE,
        namespaces=namespaces,
        nodes=find_agent(root_dir, os.environ).is_observer,
    )
    events = _follow(root_dir, query)
    is_drawn = sys.stdout.isatty() and output in (None, OutputFormat.WIDE)
    report = _ignore_staleness if is_drawn else print_staleness
    staleness = Staleness(lambda: find_agent(root_dir, os.environ), report)
    with staleness.polling() if columns.nodes else nullcontext():
        if is_drawn:
            nodes = NodePoller(root_dir)
            with nodes.polling():
                _draw(events, columns, staleness, nodes)
        else:
            exit_with_reader()
            _print(events, output, columns)


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the table: those of `kubectl get pods`, and the health."""

    wide: bool
    namespaces: bool
    nodes: bool
    """True to show the node, for pods of several nodes."""

    def table(self, pods: Iterable[PodView], now: Time) -> Table:
        more = ["IP", "NODE", MESSAGE_HEADING] if self.wide else ["NODE"] * self.nodes
        headings = (*["NAMESPACE"] * self.namespaces, *_HEADINGS, *more)
        return Table(headings, tuple(self._row(pod, now) for pod in pods))

    def _row(self, pod: PodView, now: Time) -> tuple[str, ...]:
        *cells, ip, node = pod_cells(pod_from_summary(pod), now)[:7]
        more = [ip, node, pod.health.message] if self.wide else [node] * self.nodes
        return (*[pod.namespace] * self.namespaces, *cells, pod.health.state.value, *more)


def _follow(root_dir: Path | None, query: Mapping[str, str]) -> Iterator[SseEvent]:
    """Yield all events, across restarts of the agent; an event `away` while it is unreachable.

    Raises RequestError if the first connection fails or the agent does not come back.
    """
    last, deadline = "", 0.0
    while True:
        try:
            client = QueryClient(find_agent(root_dir, os.environ))
            for event in client.watch(query, last):
                last, deadline = event.id or last, time.monotonic() + _RECONNECT_TIMEOUT_SECONDS
                yield event
        except (RequestError, SseLineTooLongError) as error:
            if time.monotonic() > deadline:
                raise RequestError(str(error)) from error
            yield SseEvent(event="away", data=str(error))
        time.sleep(_RECONNECT_SECONDS)


def _print(events: Iterator[SseEvent], output: OutputFormat | None, columns: Columns) -> None:
    """Print a line for each change; the initial pods are printed together."""
    feed, lines = PodFeed(), _LinePrinter(output, columns)
    pending: list[PodChange] = []
    is_away = False
    for event in events:
        if is_away != (event.event == "away"):
            is_away = not is_away
            state = "unreachable, will retry" if is_away else "reachable again"
            warn(f"the agent is {state}")
        pending += feed.apply(event)
        if feed.is_synced and pending:
            lines.show(pending)
            pending.clear()


class _LinePrinter:
    """Prints changes as rows of an endless table, or in a machine-readable format."""

    def __init__(self, output: OutputFormat | None, columns: Columns) -> None:
        self._output = output
        self._columns = columns
        self._printer = TablePrinter(_MIN_WIDTHS)

    def show(self, changes: Sequence[PodChange]) -> None:
        if self._output in (None, OutputFormat.WIDE):
            tables = [self._table(change) for change in changes]
            rows = tuple(row for table in tables for row in table.rows)
            self._printer.print(Table(tables[0].headings, rows))
            return
        for change in changes:
            match self._output:
                case OutputFormat.NAME:
                    write(f"pod/{change.name}\n")
                case OutputFormat.JSON:
                    write_json_line({_kind(change): change})
                case _:
                    write_yaml({_kind(change): change}, one_of_many=True)

    def _table(self, change: PodChange) -> Table:
        if not isinstance(change, DeletedEvent):
            return self._columns.table([change], current_time())
        headings = self._columns.table([], current_time()).headings
        cells = {"NAMESPACE": change.namespace, "NAME": change.name, "STATUS": "deleted"}
        return Table(headings, (tuple(cells.get(name, "") for name in headings),))


def _kind(change: PodChange) -> str:
    return "deleted" if isinstance(change, DeletedEvent) else "pod"


def print_staleness(message: str) -> None:
    warn(message or "the API server responds again")


def _ignore_staleness(_: str) -> None:
    """The last line of the page has the message."""


def _draw(
    events: Iterator[SseEvent], columns: Columns, staleness: Staleness, nodes: NodePoller
) -> None:
    """Redraw a table after changes, at a limited rate."""
    queued: queue.Queue[SseEvent | Exception] = queue.Queue(_MAX_QUEUED)
    threading.Thread(target=_enqueue_events, args=(events, queued), daemon=True).start()
    feed, away = PodFeed(), ""
    while True:
        for event in _batch(queued):
            away = event.data if event.event == "away" else ""
            feed.apply(event)
        if feed.is_synced or away:
            redraw(render_page(feed, away, staleness.text, columns, nodes.nodes))


def _enqueue_events(events: Iterator[SseEvent], to: "queue.Queue[SseEvent | Exception]") -> None:
    try:
        for event in events:
            to.put(event)
    except RequestError as error:
        to.put(error)


def _batch(queued: "queue.Queue[SseEvent | Exception]") -> list[SseEvent]:
    """Return the events of the next tick, or 0.2 s after the first one. Raises RequestError."""
    batch: list[SseEvent] = []
    deadline = time.monotonic() + _TICK_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            event = queued.get(timeout=left)
        except queue.Empty:
            break
        if isinstance(event, Exception):
            raise event
        batch.append(event)
        deadline = (
            min(deadline, time.monotonic() + _REDRAW_SECONDS) if len(batch) == 1 else deadline
        )
    return batch


def render_page(
    feed: PodFeed,
    away: str,
    staleness: str,
    columns: Columns,
    nodes: Sequence[NodeSummary] = (),
) -> list[Text]:
    size, now = shutil.get_terminal_size(), current_time()
    # Health depends on the time: a pod becomes stuck without an event.
    pods = [structs.replace(pod, health=pod_health(pod, now)) for pod in feed.pods()]
    table = shorten_columns(columns.table(pods, now), size.columns, _SHORTENED_WIDTHS)
    count = _count_health(pods)
    if away:
        foot = f"{count}; the agent is unreachable: {escape_control_chars(away)}"
    else:
        # Staleness first, so that it is not truncated.
        foot = f"{staleness}; {count}" if staleness else f"{count}; at {now.wire}"
    feet = [escape_control_chars(nodes_line(nodes)), foot] if nodes and not away else [foot]
    rows = TableLayout(table, size.columns).within(size.lines - 1 - len(feet))
    return [*rows, *(Text(line, "dim") for line in feet)]


def _count_health(pods: Iterable[PodView]) -> str:
    """Count pods by health: `3 pods: 2 healthy, 1 crashing`."""
    states = Counter(pod.health.state.value for pod in pods)
    total = states.total()
    counts = ", ".join(f"{count} {state}" for state, count in states.most_common())
    return f"{total} pod{'' if total == 1 else 's'}{f': {counts}' if counts else ''}"
