"""The structs of the /v1 query API, which the server encodes and the commands decode.

Keys are camelCase. Times are RFC 3339; those of transitions and alerts have milliseconds. What a
response embeds of `observe` and `alerts` (pods, nodes, freshness, rules) has its wire form there.
docs/reference/http/v1.md describes every field.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import structs

from podstatus.alerts.model import AlertState, RuleState, Severity, Subject
from podstatus.alerts.ports import DeliveryState
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.ports import (
    Freshness,
    HistoryCounts,
    NodeSummary,
    PodSyncProgress,
    SyncState,
)
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.health import PodHealth, pod_health
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.compare_statuses import Transition

_SECOND = 1_000_000_000
_MILLI = 1_000_000
S = TypeVar("S", bound=msgspec.Struct)


class CamelStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the structs of the query API."""


class PodView(PodSummary, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A pod with its health."""

    health: PodHealth


class TransitionView(CamelStruct, frozen=True, kw_only=True, omit_defaults=True):
    """One transition of a pod or node, from the history."""

    id: int
    """Increases from transition to transition."""
    at: str
    uid: PodUID
    """Empty for a node."""
    namespace: str
    """Empty for a node."""
    name: str
    kind: str
    subject: str = ""
    """The type of a condition, the name of a container, or a taint."""
    before: str = ""
    """Of a phase, condition, restart or readiness; left out: there was no value."""
    after: str = ""
    state_before: ContainerStateSummary | None = None
    """State, reason and exit code of a container; left out: there was no state."""
    state_after: ContainerStateSummary | None = None
    duration_seconds: float | None = None
    """Grace period of a deletion, time that a sync took or that the agent was away."""
    reason: str = ""
    message: str = ""


class AlertView(CamelStruct, frozen=True, kw_only=True, omit_defaults=True):
    """An alert as `/v1` shows it."""

    id: str
    """Of one activation: the same alert has another id when it becomes active again."""
    rule: str
    state: AlertState
    severity: Severity
    subject: Subject
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    active_at: str
    """When the expression became true."""
    fired_at: str = ""
    """Left out: the alert has not fired yet."""
    inactive_since: str = ""
    """When the expression became false; left out: it is true."""
    resolved_at: str = ""
    """Left out: the alert is not resolved."""


class PodsResponse(CamelStruct, frozen=True, kw_only=True):
    """Pods, sorted by namespace and name."""

    freshness: Freshness
    pods: tuple[PodView, ...]
    remaining: int = 0
    """Pods that follow on later pages."""
    continue_: str = msgspec.field(default="", name="continue")
    """Parameter for the next page; empty: this was the last one."""


class PodResponse(CamelStruct, frozen=True, kw_only=True):
    """Response with one pod and its sync state."""

    freshness: Freshness
    pod: PodView
    sync: PodSyncProgress | None = None
    """How much of its status the API server has; null on an observer, which sends none."""


class TransitionsResponse(CamelStruct, frozen=True, kw_only=True):
    """Response with transitions, oldest first."""

    freshness: Freshness
    history: HistoryCounts
    """Counters of the history, with those of lost entries."""
    transitions: tuple[TransitionView, ...]
    after: int = 0
    """Parameter for the next page."""
    more: bool = False
    """Whether the next page has transitions already."""


class NodeResponse(CamelStruct, frozen=True, kw_only=True):
    """Response with one node and its load."""

    freshness: Freshness
    node: NodeSummary


class NodeLoadView(CamelStruct, frozen=True, kw_only=True, omit_defaults=True):
    """Used fractions of a node, averages of a minute; left out: unknown."""

    at: str
    cpu: float | None = None
    memory: float | None = None
    disk: float | None = None
    inodes: float | None = None
    pids: float | None = None
    pods: float | None = None


class NodeTimelineResponse(CamelStruct, frozen=True, kw_only=True):
    """Response with the transitions and the load of a node, oldest first."""

    freshness: Freshness
    history: HistoryCounts
    """Counters of the history, with those of lost entries."""
    transitions: tuple[TransitionView, ...]
    load: tuple[NodeLoadView, ...] = ()
    """Samples where the load has changed, at least every ten minutes; only on the first page."""
    after: int = 0
    """Parameter for the next page."""
    more: bool = False
    """Whether the next page has transitions already."""


class NodesResponse(CamelStruct, frozen=True, kw_only=True):
    """All known nodes, sorted by name."""

    freshness: Freshness
    nodes: tuple[NodeSummary, ...]


class AlertsResponse(CamelStruct, frozen=True, kw_only=True):
    """Alerts, firing ones first, with the state of rules and receivers."""

    freshness: Freshness
    alerts: tuple[AlertView, ...]
    remaining: int = 0
    """Alerts above the limit."""
    rules: tuple[RuleState, ...] = ()
    deliveries: tuple[DeliveryState, ...] = ()


class StatusResponse(CamelStruct, frozen=True, kw_only=True):
    """Counts of everything known, and how fresh it is."""

    freshness: Freshness
    history: HistoryCounts
    sync: SyncState | None
    """Null on an observer, which sends no statuses."""
    pods: int
    nodes: int
    phases: Mapping[str, int]
    """Pods by phase."""
    health: Mapping[str, int]
    """Pods by health state."""


class ErrorResponse(CamelStruct, frozen=True, kw_only=True):
    """An error, in the form of a `v1.Status`."""

    kind: str
    api_version: str
    status: str
    reason: str
    message: str
    code: int


class SyncedEvent(CamelStruct, frozen=True, kw_only=True):
    """Event `synced`: the initial state is complete, changes follow."""

    resumed: bool
    """Whether only the changes since the given id were sent, not the whole state."""


class ResetEvent(CamelStruct, frozen=True, kw_only=True):
    """Event `reset`: discard all pods, the whole state follows."""

    reason: str


class ClosingEvent(CamelStruct, frozen=True, kw_only=True):
    """Event `closing`: the server ends the connection; reconnect to continue."""

    reason: str


class GapEvent(CamelStruct, frozen=True, kw_only=True):
    """Event `gap`: the transitions between these two ids have been pruned."""

    after: int
    before: int


class DeletedEvent(CamelStruct, frozen=True, kw_only=True):
    """Event `deleted`: the pod is gone, or does not match the filter any more."""

    uid: PodUID
    namespace: str
    name: str


def round_floats(response: S) -> S:
    """Round measured values to three decimals, which is their precision."""
    return structs.replace(
        response, **{name: _round_value(value) for name, value in structs.asdict(response).items()}
    )


def _round_value(value: object) -> object:
    match value:
        case float():
            return int(value) if value.is_integer() else round(value, 3)
        case Freshness() | SyncState() | PodSyncProgress() | NodeSummary():
            return round_floats(value)
        case NodeLoad() | ResourceLoad() | LoadAverage():
            return round_floats(value)
        case [NodeSummary(), *_]:
            return tuple(map(_round_value, value))
        case Mapping():
            return {name: _round_value(amount) for name, amount in value.items()}
    return value


def pod_view(pod: PodSummary, now: Time) -> PodView:
    """The wire form of a pod, with its health at this time."""
    return PodView(health=pod_health(pod, now), **structs.asdict(pod))


def transition_view(entry: HistoryEntry) -> TransitionView:
    """A history entry as it travels, with its time in milliseconds."""
    return TransitionView(
        id=entry.id,
        at=rfc3339_millis(entry.at),
        uid=entry.uid,
        namespace=entry.namespace,
        name=entry.name,
        **structs.asdict(entry.transition),
    )


def node_load_view(sample: NodeLoadSample) -> NodeLoadView:
    """A sample as it travels, with its time in milliseconds."""
    fractions = {name: getattr(sample, name) for name in NodeLoadView.__struct_fields__[1:]}
    return NodeLoadView(
        at=rfc3339_millis(sample.at),
        **{name: None if it is None else round(it, 3) for name, it in fractions.items()},
    )


def parse_node_load(view: NodeLoadView, node: str) -> NodeLoadSample:
    """The inverse of `node_load_view`. Raises TimeError."""
    fractions = {name: getattr(view, name) for name in NodeLoadView.__struct_fields__[1:]}
    return NodeLoadSample(node=node, at=Time.parse(view.at).unix_nanos(), **fractions)


def parse_transition(view: TransitionView) -> HistoryEntry:
    """The inverse of `transition_view`. Raises TimeError."""
    return HistoryEntry(
        id=view.id,
        at=Time.parse(view.at).unix_nanos(),
        uid=view.uid,
        namespace=view.namespace,
        name=view.name,
        transition=Transition(**{it: getattr(view, it) for it in Transition.__struct_fields__}),
    )


def rfc3339_millis(at: int) -> str:
    """RFC 3339 in UTC with milliseconds, from nanoseconds since the Unix epoch."""
    seconds = str(Time.from_unix_nanos(at - at % _SECOND)).removesuffix("Z")
    return f"{seconds}.{at % _SECOND // _MILLI:03}Z"


def encode_response(response: msgspec.Struct) -> bytes:
    return msgspec.json.encode(response, enc_hook=_encode_hook)


def _encode_hook(value: object) -> str:
    if isinstance(value, Time | Quantity):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} has no wire form")
