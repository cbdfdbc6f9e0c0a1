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
from podstatus.observe.history.store import Moment
from podstatus.observe.status_view import Knowledge, NodeSummary, PodSync, SyncState
from podstatus.observe.summary.health import Health, pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.status_transitions import Transition

_SECOND = 1_000_000_000
_MILLI = 1_000_000
S = TypeVar("S", bound=msgspec.Struct)


class PodShown(PodSummary, frozen=True, kw_only=True, omit_defaults=True):
    """A pod, and how it is."""

    health: Health


class MomentShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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


class PodsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, by namespace and name."""

    knowledge: Knowledge
    pods: tuple[PodShown, ...]
    remaining: int = 0
    """How many more there are."""
    continue_: str = msgspec.field(default="", name="continue")
    """To be given back for the next ones; empty: these were the last."""


class PodAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One pod."""

    knowledge: Knowledge
    pod: PodShown
    sync: PodSync | None = None
    """How far the API server has its status; None if nobody here sends it."""


class MomentsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, the oldest first."""

    knowledge: Knowledge
    history: HistoryCounts
    """Whether something is missing: what was lost is counted."""
    moments: tuple[MomentShown, ...]
    after: int = 0
    """What comes next is later than this."""
    more: bool = False
    """Whether there is more already."""


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    knowledge: Knowledge
    node: NodeSummary


class NodesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes that are known here, by name."""

    knowledge: Knowledge
    nodes: tuple[NodeSummary, ...]


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How things are on the whole."""

    knowledge: Knowledge
    history: HistoryCounts
    sync: SyncState | None
    """None if nobody here sends statuses."""
    pods: int
    nodes: int
    phases: Mapping[str, int]
    health: Mapping[str, int]
    """By word, how many pods."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why something was not answered, in the form of a `v1.Status`."""

    kind: str
    api_version: str
    status: str
    reason: str
    message: str
    code: int


def to_the_thousandth(answer: S) -> S:
    """The answer with what was measured to three places: it is not known better than that."""
    return structs.replace(
        answer, **{name: _rounded(value) for name, value in structs.asdict(answer).items()}
    )


def _rounded(value: object) -> object:
    match value:
        case float():
            return int(value) if value.is_integer() else round(value, 3)
        case Knowledge() | SyncState() | PodSync() | NodeSummary():
            return to_the_thousandth(value)
        case [NodeSummary(), *_]:
            return tuple(map(_rounded, value))
        case Mapping():
            return {name: _rounded(amount) for name, amount in value.items()}
    return value


def show_pod(pod: PodSummary, now: Time) -> PodShown:
    """A pod, and how it is at this moment."""
    return PodShown(health=pod_health(pod, now), **structs.asdict(pod))


def show_moment(moment: Moment) -> MomentShown:
    """Something that happened, on one level."""
    change = moment.transition
    return MomentShown(
        id=moment.id,
        at=to_the_millisecond(moment.at),
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


def read_moment(shown: MomentShown) -> Moment:
    """The other way, as exact as it was told. Raises TimeError."""
    return Moment(
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


def to_the_millisecond(at: int) -> str:
    """An instant, in nanoseconds since the Unix epoch, with three digits after the second."""
    seconds = str(Time.from_unix_nanos(at - at % _SECOND)).removesuffix("Z")
    return f"{seconds}.{at % _SECOND // _MILLI:03}Z"


def encode_answer(answer: msgspec.Struct) -> bytes:
    """An answer as it travels."""
    return msgspec.json.encode(answer, enc_hook=_text)


def _text(value: object) -> str:
    if isinstance(value, Time | Quantity):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} does not travel")
