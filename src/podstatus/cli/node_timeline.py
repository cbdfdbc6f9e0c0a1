"""The history of a node for `podstatus timeline`, and what its page shares with that of a pod."""

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs
from rich.text import Text

from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.query_api_client import (
    QueryClient,
    to_history_entry,
    to_load_sample,
)
from podstatus.cli.client.request_errors import NotFoundError, RequestError
from podstatus.cli.client.server_objects import current_time
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.program import suggested_command
from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.terminal import can_encode
from podstatus.cli.timeline_view.chart import ASCII, BLOCKS, draw_timeline
from podstatus.cli.timeline_view.event_lines import event_digest, to_single_line
from podstatus.cli.timeline_view.intervals import build_node_chart
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.ports import NodeSummary
from podstatus.web.v1.wire import NodeTimelineResponse, TransitionView

_SECOND = 1_000_000_000
_MAX_LISTED = 30
"""Maximum lines of the digest below a chart."""


class NodeHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded history of a node."""

    client: QueryClient
    name: str
    response: NodeTimelineResponse
    begin: int | None
    """Start of the requested range, in Unix ns; None for all entries."""
    now: int

    @classmethod
    def read(cls, root_dir: Path | None, name: str, seconds: float) -> "NodeHistory":
        """Read the history of the last `seconds`, 0 for all of it. Raises RequestError."""
        agent = find_agent(root_dir, os.environ)
        client = QueryClient(agent)
        warn_if_stale(agent)
        try:
            response = client.node_timeline(name)
        except NotFoundError as error:
            raise RequestError(_not_found_message(agent, name)) from error
        now = current_time().unix_nanos()
        begin = now - round(seconds * _SECOND) if seconds else None
        return cls(client=client, name=name, response=response, begin=begin, now=now)

    def since(self, begin: int) -> NodeTimelineResponse:
        """Return the response without what was before a time. Raises RequestError."""
        response = self.response
        load = tuple(it for it in response.load if to_load_sample(it, self.name).at >= begin)
        transitions = newer(response.transitions, begin)
        return structs.replace(response, transitions=transitions, load=load)

    def page(self, width: int) -> list[Text]:
        """Return the chart and the digest below it. Raises RequestError."""
        entries = to_entries(self.response.transitions)
        samples = [to_load_sample(it, self.name) for it in self.response.load]
        node = self.client.node(self.name)
        times = sorted(it[0].at for it in (entries, samples) if it)
        start = self.begin if self.begin is not None else times[0] if times else self.now
        end = self.now if node is not None or not entries else entries[-1].at
        symbols = BLOCKS if can_encode(BLOCKS.all) else ASCII
        chart = build_node_chart(entries, samples, begin=start, end=max(end, start + _SECOND))
        recent = [entry for entry in entries if entry.at >= start]
        omitted = chart.always_false
        digest = event_digest(recent, width=width, symbols=symbols, omitted_conditions=omitted)
        command = suggested_command(f"timeline node/{shlex.quote(self.name)} --list")
        return [
            *_head(self.name, node, width),
            *draw_timeline(chart, width, symbols),
            Text(),
            *digest_lines(digest, command),
        ]


def newer(transitions: Iterable[TransitionView], begin: int) -> tuple[TransitionView, ...]:
    """Return the transitions from a time on. Raises RequestError."""
    return tuple(it for it in transitions if to_history_entry(it).at >= begin)


def to_entries(transitions: Iterable[TransitionView]) -> list[HistoryEntry]:
    """Convert transitions of the API. Raises RequestError."""
    return [to_history_entry(it) for it in transitions]


def digest_lines(digest: Sequence[list[Text]], command: str) -> list[Text]:
    """Return the newest lines of a digest; `command` shows the others."""
    lines = [line for lines in digest[-_MAX_LISTED:] for line in lines]
    if (count := len(digest) - _MAX_LISTED) <= 0:
        return lines
    text = f"({count} earlier lines: {command})"
    return [Text(escape_control_chars(text), "dim"), *lines]


def _not_found_message(agent: AgentClient, name: str) -> str:
    where = "the observer" if agent.is_observer else f"the agent of node {agent.node}"
    command = suggested_command("get nodes --from agent")
    return f"no node {name!r} on {where}, and no history of one; to see all nodes: {command}"


def _head(name: str, node: NodeSummary | None, width: int) -> list[Text]:
    text = f"Node {name} {_state(node)}"
    return [Text(line, "bold") for line in wrap_text(to_single_line(text), width)]


def _state(node: NodeSummary | None) -> str:
    if node is None:
        return "is deleted."
    if node.ready:
        return "is ready."
    reason = ": ".join(filter(None, (node.reason, node.message)))
    return f"is not ready. {reason}"
