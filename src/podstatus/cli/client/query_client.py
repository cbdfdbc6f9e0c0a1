"""What the commands ask of the agent's own API: pods, what happened to them, nodes.

Of each answer the commands know what they need; docs/query-api.md has the rest.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from podstatus.base.msgspec_json import json_decoder
from podstatus.cli.client.agent_client import NodePort, NotThereError
from podstatus.cli.client.api_server import CannotAskError
from podstatus.cli.client.sse import ServerSent, server_sent
from podstatus.kube.scalars.time import Time, TimeError
from podstatus.observe.history.status_writer import HistoryCounts
from podstatus.observe.history.store import Moment
from podstatus.observe.status_view import Knowledge, NodeSummary
from podstatus.observe.summary.health import Health, Word
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.wire import TransitionView, parse_transition

T = TypeVar("T")
_AT_ONCE = 5_000
_PODS_AT_ONCE = 1_000
_SILENCE_SECONDS = 60.0
"""Of a watch: there is a sign of life every 15 s."""


class ShownPod(PodSummary, frozen=True, kw_only=True, omit_defaults=True):
    """A pod, and how it is."""

    health: Health = Health(Word.UNKNOWN, "")


class Happened(msgspec.Struct, frozen=True):
    """Moments, the oldest first."""

    moments: tuple[TransitionView, ...]
    history: HistoryCounts = HistoryCounts()
    """Whether some are missing."""


class _Moments(msgspec.Struct, frozen=True):
    moments: tuple[TransitionView, ...]
    history: HistoryCounts = HistoryCounts()
    after: int = 0
    more: bool = False


class _Pods(msgspec.Struct, frozen=True):
    pods: tuple[ShownPod, ...]
    continue_: str = msgspec.field(default="", name="continue")


class _OnePod(msgspec.Struct, frozen=True):
    pod: ShownPod


class ShownNodes(msgspec.Struct, frozen=True):
    """Nodes, and how old what is known is."""

    nodes: tuple[NodeSummary, ...]
    knowledge: Knowledge = Knowledge()


class QueryPort:
    """The agent's own API. All methods raise CannotAskError."""

    def __init__(self, node: NodePort) -> None:
        self._node = node

    def pod(self, namespace: str, name: str) -> ShownPod | None:
        """One pod, and how it is; None if it is not there."""
        try:
            return self.answer(_pod_path(namespace, name), {}, _OnePod).pod
        except NotThereError:
            return None

    def pods(self, namespace: str | None) -> list[ShownPod]:
        """All of a namespace, or all; by namespace and name."""
        query = {"limit": str(_PODS_AT_ONCE)} | ({"namespace": namespace} if namespace else {})
        page = self.answer("/v1/pods", query, _Pods)
        pods = list(page.pods)
        while page.continue_:
            page = self.answer("/v1/pods", {**query, "continue": page.continue_}, _Pods)
            pods += page.pods
        return pods

    def nodes(self) -> ShownNodes:
        """All that are known there."""
        return self.answer("/v1/nodes", {}, ShownNodes)

    def timeline(self, namespace: str, name: str) -> Happened:
        """What happened to the pods of this name."""
        return self._moments(f"{_pod_path(namespace, name)}/timeline", {})

    def events(self, namespace: str | None) -> Happened:
        """What was said of pods in events, in one namespace or all."""
        return self._moments("/v1/events", {"namespace": namespace} if namespace else {})

    def watch(self, query: Mapping[str, str], after: str) -> Iterator[ServerSent]:
        """What is sent to one who has got so far; it ends only with the connection."""
        place = {"after": after} if after else {}
        pieces = self._node.ask("/v1/watch", {**query, **place}, silence_seconds=_SILENCE_SECONDS)
        return server_sent(pieces)

    def _moments(self, path: str, query: Mapping[str, str]) -> Happened:
        moments: list[TransitionView] = []
        after = 0
        while True:
            page = {"limit": str(_AT_ONCE), "after": str(after)}
            told = self.answer(path, {**query, **page}, _Moments)
            moments += told.moments
            if not told.more or told.after <= after:
                return Happened(tuple(moments), told.history)
            after = told.after

    def answer(self, path: str, query: Mapping[str, str], kind: type[T]) -> T:
        """What is answered, as a value of this kind."""
        return read_answer(b"".join(self._node.ask(path, query)), kind)


def to_moment(shown: TransitionView) -> Moment:
    """The same with a time to reckon with. Raises CannotAskError."""
    try:
        return parse_transition(shown)
    except TimeError as error:
        raise CannotAskError(f"what the agent says cannot be read: {error}") from error


def read_answer(text: bytes, kind: type[T]) -> T:
    """A value of the agent's API. Raises CannotAskError."""
    try:
        return json_decoder(kind, _read_time).decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CannotAskError(f"what the agent says cannot be read: {error}") from error


def _read_time(kind: type[Any], value: object) -> object:
    if kind is not Time:
        raise NotImplementedError(f"a {kind.__name__} does not travel")
    try:
        return Time.parse(value)
    except TimeError as error:
        raise ValueError(str(error)) from error


def _pod_path(namespace: str, name: str) -> str:
    return f"/v1/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"
