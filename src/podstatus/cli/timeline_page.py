"""Print a history for `podstatus timeline`: a chart, a list, or JSON and YAML."""

import os
import shlex
from pathlib import Path

import msgspec
from msgspec import structs
from rich.text import Text

from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import NotFoundError, RequestError
from podstatus.cli.client.server_objects import current_time
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.document_output import write_json, write_yaml
from podstatus.cli.errors import warn
from podstatus.cli.node_timeline import (
    NodeHistory,
    digest_lines,
    newer,
    to_entries,
)
from podstatus.cli.program import describe_pod_command, suggested_command
from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.styled_output import write_lines
from podstatus.cli.terminal import can_encode, terminal_width
from podstatus.cli.timeline_view.chart import ASCII, BLOCKS, draw_timeline
from podstatus.cli.timeline_view.event_lines import event_digest, event_list, to_single_line
from podstatus.cli.timeline_view.intervals import build_chart
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.ports import HistoryCounts
from podstatus.observe.summary.health import HealthState
from podstatus.observe.transitions.compare_statuses import FINISHED
from podstatus.web.v1.wire import PodView, TransitionsResponse

_SECOND = 1_000_000_000


class PodHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded history of all pods of one name."""

    client: QueryClient
    namespace: str
    name: str
    response: TransitionsResponse
    begin: int | None
    """Start of the requested range, in Unix ns; None for all entries."""
    now: int

    @classmethod
    def read(cls, root_dir: Path | None, namespace: str, pod: str, seconds: float) -> "PodHistory":
        """Read the history of the last `seconds`, 0 for all of it. Raises RequestError."""
        agent = find_agent(root_dir, os.environ)
        client = QueryClient(agent)
        warn_if_stale(agent)
        try:
            response = client.timeline(namespace, pod)
        except NotFoundError as error:
            raise RequestError(_not_found_message(agent, namespace, pod)) from error
        now = current_time().unix_nanos()
        begin = now - round(seconds * _SECOND) if seconds else None
        return cls(
            client=client, namespace=namespace, name=pod, response=response, begin=begin, now=now
        )

    def since(self, begin: int) -> TransitionsResponse:
        """Return the response without what was before a time. Raises RequestError."""
        return structs.replace(self.response, transitions=newer(self.response.transitions, begin))

    def page(self, width: int) -> list[Text]:
        """Return the chart and the digest below it. Raises RequestError."""
        current = self.client.pod(self.namespace, self.name)
        return _render_page(self, to_entries(self.response.transitions), current, width)


def _not_found_message(agent: AgentClient, namespace: str, pod: str) -> str:
    expiry = (
        "the history of a deleted pod is kept for the --history-days of "
        f"podstatus {'observe' if agent.is_observer else 'run'}"
    )
    if agent.is_observer:
        return (
            f"no pod {pod!r} in namespace {namespace}, and no history of one; to see all pods: "
            f"{suggested_command('get pods -A')}; {expiry}"
        )
    return (
        f"no pod {pod!r} in namespace {namespace} is bound to node {agent.node}, and there is no "
        f"history of one; to see why: {describe_pod_command(namespace, pod)}; to see all pods: "
        f"{suggested_command('get pods -A -o wide')}; {expiry}"
    )


def print_entries(history: PodHistory | NodeHistory, *, as_json: bool) -> None:
    """Print the entries as JSON or YAML. Raises RequestError."""
    begin = history.begin
    response = history.response if begin is None else history.since(begin)
    (write_json if as_json else write_yaml)(response)


def print_list(history: PodHistory | NodeHistory) -> None:
    """Print one entry per line. Raises RequestError."""
    entries = to_entries(history.response.transitions)
    arrow = "→" if can_encode("→") else "->"
    write_lines(event_list([e for e in entries if e.at >= (history.begin or 0)], arrow=arrow))
    _warn_if_incomplete(history.response.history)


def draw_page(history: PodHistory | NodeHistory, width: int) -> None:
    """Draw the chart and the digest below it. Raises RequestError."""
    write_lines(history.page(terminal_width(width)))
    _warn_if_incomplete(history.response.history)


def _warn_if_incomplete(counts: HistoryCounts) -> None:
    if lost := counts.overflowed + counts.lost_events:
        warn(f"the history queue overflowed by {lost} changes; entries are missing")


def _render_page(
    history: PodHistory, entries: list[HistoryEntry], pod: PodView | None, width: int
) -> list[Text]:
    namespace, name, begin, now = history.namespace, history.name, history.begin, history.now
    symbols = BLOCKS if can_encode(BLOCKS.all) else ASCII
    start = begin if begin is not None else entries[0].at if entries else now
    end = max(_end(entries, begin, now, is_deleted=pod is None), start + _SECOND)
    existing = None if pod is None else pod.uid
    chart = build_chart(entries, begin=start, end=end, existing=existing)
    recent = [entry for entry in entries if entry.at >= start]
    without_row = (*chart.always_true, *chart.same_as_ready)
    digest = event_digest(recent, width=width, symbols=symbols, omitted_conditions=without_row)
    return [
        *_head(namespace, name, pod, width),
        *draw_timeline(chart, width, symbols),
        Text(),
        *digest_lines(digest, _list_command(namespace, name)),
    ]


def _head(namespace: str, name: str, pod: PodView | None, width: int) -> list[Text]:
    text = f"{namespace}/{name} is deleted."
    if pod is not None:
        text = f"{namespace}/{name} {_predicate(pod.health.state)}. {pod.health.message}"
    return [Text(line, "bold") for line in wrap_text(to_single_line(text), width)]


def _predicate(state: HealthState) -> str:
    match state:
        case HealthState.FAILED:
            return "has failed"
        case HealthState.UNKNOWN:
            return "has an unknown outcome"
        case _:
            return f"is {state.value}"


def _list_command(namespace: str, name: str) -> str:
    where = "" if namespace == "default" else f" -n {shlex.quote(namespace)}"
    return suggested_command(f"timeline {shlex.quote(name)}{where} --list")


def _end(entries: list[HistoryEntry], begin: int | None, now: int, *, is_deleted: bool) -> int:
    """The last entry of a pod that is finished or was deleted without an agent, else `now`.

    With a requested range, `now` as well if the pod still exists, or nothing is in the range.
    """
    if not entries:
        return now
    last = entries[-1]
    is_in_range = begin is None or (is_deleted and last.at >= begin)
    if is_in_range and (is_deleted or last.transition.kind == FINISHED):
        return last.at
    return max(now, last.at)
