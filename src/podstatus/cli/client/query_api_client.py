"""The client of the agent's query API (`/v1`): pods, nodes, history, events, watch.

The API is described in docs/reference/http/v1.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import structs

from podstatus.base.msgspec_json import json_decoder
from podstatus.cli.client.https_client import AgentClient
from podstatus.cli.client.request_errors import NotFoundError, RequestError
from podstatus.cli.client.sse import SseEvent, parse_sse
from podstatus.kube.scalars.time import Time, TimeError
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.ports import NodeSummary
from podstatus.web.v1.wire import (
    NodeLoadView,
    NodeResponse,
    NodesResponse,
    NodeTimelineResponse,
    PodResponse,
    PodsResponse,
    PodView,
    TransitionsResponse,
    TransitionView,
    parse_node_load,
    parse_transition,
)

T = TypeVar("T")
_PAGE_SIZE = 5_000
_POD_PAGE_SIZE = 1_000
_IDLE_SECONDS = 60.0
"""Idle timeout of a watch; the agent sends a keep-alive every 15 s."""


class QueryClient:
    """A client of the query API. All methods raise RequestError."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent

    def pod(self, namespace: str, name: str) -> PodView | None:
        """Return a pod with its health; None if it does not exist."""
        try:
            return self.get(_pod_path(namespace, name), {}, PodResponse).pod
        except NotFoundError:
            return None

    def pods(self, namespace: str | None, *, health: str = "") -> list[PodView]:
        """Return the pods of a namespace, None for all, sorted by namespace and name.

        `health`: only those with this health state.
        """
        query = {"limit": str(_POD_PAGE_SIZE)} | ({"namespace": namespace} if namespace else {})
        query |= {"health": health} if health else {}
        page = self.get("/v1/pods", query, PodsResponse)
        pods = list(page.pods)
        while page.continue_:
            page = self.get("/v1/pods", {**query, "continue": page.continue_}, PodsResponse)
            pods += page.pods
        return pods

    def nodes(self) -> NodesResponse:
        """Return all nodes that the agent or observer has."""
        return self.get("/v1/nodes", {}, NodesResponse)

    def timeline(self, namespace: str, name: str) -> TransitionsResponse:
        """Return the history of all pods with this name."""
        return self._history(f"{_pod_path(namespace, name)}/timeline", {})

    def node(self, name: str) -> NodeSummary | None:
        """Return a node with its load; None if it does not exist."""
        try:
            return self.get(_node_path(name), {}, NodeResponse).node
        except NotFoundError:
            return None

    def node_timeline(self, name: str) -> NodeTimelineResponse:
        """Return the history of a node."""
        path = f"{_node_path(name)}/timeline"
        first = self.get(path, {"limit": str(_PAGE_SIZE)}, NodeTimelineResponse)
        if not first.more:
            return first
        rest = self._history(path, {}, first.after)
        return structs.replace(first, transitions=(*first.transitions, *rest.transitions))

    def events(self, namespace: str | None) -> TransitionsResponse:
        """Return the recorded events about pods of a namespace, None for all."""
        return self._history("/v1/events", {"namespace": namespace} if namespace else {})

    def watch(self, query: Mapping[str, str], after: str) -> Iterator[SseEvent]:
        """Yield the events after the id `after` until the connection ends."""
        position = {"after": after} if after else {}
        chunks = self._agent.request("/v1/watch", {**query, **position}, idle_timeout=_IDLE_SECONDS)
        return parse_sse(chunks)

    def _history(self, path: str, query: Mapping[str, str], after: int = 0) -> TransitionsResponse:
        transitions: list[TransitionView] = []
        while True:
            page = {"limit": str(_PAGE_SIZE), "after": str(after)}
            response = self.get(path, {**query, **page}, TransitionsResponse)
            transitions += response.transitions
            if not response.more or response.after <= after:
                return structs.replace(response, transitions=tuple(transitions))
            after = response.after

    def get(self, path: str, query: Mapping[str, str], kind: type[T]) -> T:
        """Return the decoded response of a GET request."""
        return decode_response(b"".join(self._agent.request(path, query)), kind)


def to_history_entry(item: TransitionView) -> HistoryEntry:
    """Convert a transition of the API, with its time parsed. Raises RequestError."""
    try:
        return parse_transition(item)
    except TimeError as error:
        raise RequestError(f"cannot decode the response of the agent: {error}") from error


def to_load_sample(item: NodeLoadView, node: str) -> NodeLoadSample:
    """Convert a sample of the API, with its time parsed. Raises RequestError."""
    try:
        return parse_node_load(item, node)
    except TimeError as error:
        raise RequestError(f"cannot decode the response of the agent: {error}") from error


def decode_response(text: bytes, kind: type[T]) -> T:
    """Decode a JSON value of the query API. Raises RequestError."""
    try:
        return json_decoder(kind, _decode_time).decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RequestError(f"cannot decode the response of the agent: {error}") from error


def _decode_time(kind: type[Any], value: object) -> object:
    if kind is not Time:
        raise NotImplementedError(f"cannot decode a {kind.__name__}")
    try:
        return Time.parse(value)
    except TimeError as error:
        raise ValueError(str(error)) from error


def _pod_path(namespace: str, name: str) -> str:
    return f"/v1/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"


def _node_path(name: str) -> str:
    return f"/v1/nodes/{quote(name, safe='')}"
