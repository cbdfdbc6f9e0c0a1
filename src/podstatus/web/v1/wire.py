"""What our own API answers, as values; docs/query-api.md says what each of them means.

Names are as in Python. Times are RFC 3339; those of moments have milliseconds.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.status_writer import HistoryCounts
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.status_view import Freshness, NodeSummary, PodSyncProgress, SyncState
from podstatus.observe.summary.health import PodHealth, pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.status_transitions import Transition

_SECOND = 1_000_000_000
_MILLI = 1_000_000
S = TypeVar("S", bound=msgspec.Struct)


class PodView(PodSummary, frozen=True, kw_only=True, omit_defaults=True):
    """A pod, and how it is."""

    health: PodHealth


class TransitionView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened to a pod."""

    id: int
    """Grows from moment to moment: what comes later has a larger one."""
    at: str
    uid: PodUID
    namespace: str
    name: str
    kind: str
    subject: str = ""
    """The type of a condition, or the name of a container."""
    before: str = ""
    after: str = ""
    reason: str = ""
    message: str = ""


class PodsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, by namespace and name."""

    knowledge: Freshness
    pods: tuple[PodView, ...]
    remaining: int = 0
    """How many more there are."""
    continue_: str = msgspec.field(default="", name="continue")
    """To be given back for the next ones; empty: these were the last."""


class PodResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One pod."""

    knowledge: Freshness
    pod: PodView
    sync: PodSyncProgress | None = None
    """How far the API server has its status; None if nobody here sends it."""


class TransitionsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, the oldest first."""

    knowledge: Freshness
    history: HistoryCounts
    """Whether something is missing: what was lost is counted."""
    moments: tuple[TransitionView, ...]
    after: int = 0
    """What comes next is later than this."""
    more: bool = False
    """Whether there is more already."""


class NodeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    knowledge: Freshness
    node: NodeSummary


class NodesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes that are known here, by name."""

    knowledge: Freshness
    nodes: tuple[NodeSummary, ...]


class StatusResponse(msgspec.Struct, frozen=True, kw_only=True):
    """How things are on the whole."""

    knowledge: Freshness
    history: HistoryCounts
    sync: SyncState | None
    """None if nobody here sends statuses."""
    pods: int
    nodes: int
    phases: Mapping[str, int]
    health: Mapping[str, int]
    """By word, how many pods."""


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why something was not answered, in the form of a `v1.Status`."""

    kind: str
    api_version: str
    status: str
    reason: str
    message: str
    code: int


def round_floats(answer: S) -> S:
    """The answer with what was measured to three places: it is not known better than that."""
    return structs.replace(
        answer, **{name: _round_value(value) for name, value in structs.asdict(answer).items()}
    )


def _round_value(value: object) -> object:
    match value:
        case float():
            return int(value) if value.is_integer() else round(value, 3)
        case Freshness() | SyncState() | PodSyncProgress() | NodeSummary():
            return round_floats(value)
        case [NodeSummary(), *_]:
            return tuple(map(_round_value, value))
        case Mapping():
            return {name: _round_value(amount) for name, amount in value.items()}
    return value


def pod_view(pod: PodSummary, now: Time) -> PodView:
    """A pod, and how it is at this moment."""
    return PodView(health=pod_health(pod, now), **structs.asdict(pod))


def transition_view(moment: HistoryEntry) -> TransitionView:
    """Something that happened, on one level."""
    change = moment.transition
    return TransitionView(
        id=moment.id,
        at=rfc3339_millis(moment.at),
        uid=moment.uid,
        namespace=moment.namespace,
        name=moment.name,
        kind=change.kind,
        subject=change.subject,
        before=change.before,
        after=change.after,
        reason=change.reason,
        message=change.message,
    )


def parse_transition(shown: TransitionView) -> HistoryEntry:
    """The other way, as exact as it was told. Raises TimeError."""
    return HistoryEntry(
        id=shown.id,
        at=Time.parse(shown.at).unix_nanos(),
        uid=shown.uid,
        namespace=shown.namespace,
        name=shown.name,
        transition=Transition(
            kind=shown.kind,
            subject=shown.subject,
            before=shown.before,
            after=shown.after,
            reason=shown.reason,
            message=shown.message,
        ),
    )


def rfc3339_millis(at: int) -> str:
    """An instant, in nanoseconds since the Unix epoch, with three digits after the second."""
    seconds = str(Time.from_unix_nanos(at - at % _SECOND)).removesuffix("Z")
    return f"{seconds}.{at % _SECOND // _MILLI:03}Z"


def encode_response(answer: msgspec.Struct) -> bytes:
    """An answer as it travels."""
    return msgspec.json.encode(answer, enc_hook=_encode_hook)


def _encode_hook(value: object) -> str:
    if isinstance(value, Time | Quantity):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} does not travel")
