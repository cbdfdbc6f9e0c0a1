"""Node conditions, and the events of their changes.

Conditions of other controllers are left unchanged. Reason and message of a pressure condition
change only together with its status; those of Ready change at once. Upstream: nodestatus/setters.go
v1.36.4.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from podstatus.kube.objects.node import NodeCondition
from podstatus.kube.scalars.time import Time

MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"
READY = "Ready"
AGENT_STOPPED = "podstatus.dev/AgentStopped"
"""True from an orderly stop of the agent to its next start, when the condition is removed."""
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
ALERT_CONDITION_PREFIX = "alerts.podstatus.dev/"
"""Type prefix of the conditions that this agent adds and removes."""


class NodeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to record about the node."""

    reason: str
    message: str
    warning: bool = False


class AlertCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A node condition that is True while an alert fires."""

    type: str
    """Begins with `ALERT_CONDITION_PREFIX`, which marks its owner, also after a restart."""
    reason: str
    message: str = ""


class _ConditionText(msgspec.Struct, frozen=True):
    """Reason, message and event reason of one status of a condition."""

    reason: str
    message: str
    event: str


_PRESSURE_TEXT: Mapping[str, Mapping[bool, _ConditionText]] = {
    MEMORY_PRESSURE: {
        True: _ConditionText(
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ),
        False: _ConditionText(
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
            "NodeHasSufficientMemory",
        ),
    },
    DISK_PRESSURE: {
        True: _ConditionText(
            "KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"
        ),
        False: _ConditionText(
            "KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"
        ),
    },
    PID_PRESSURE: {
        True: _ConditionText(
            "KubeletHasInsufficientPID",
            "kubelet has insufficient PID available",
            "NodeHasInsufficientPID",
        ),
        False: _ConditionText(
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
            "NodeHasSufficientPID",
        ),
    },
}


class NodeConditionsUpdate(msgspec.Struct, frozen=True):
    """The new conditions of a node, and the events to record."""

    items: tuple[NodeCondition, ...]
    events: tuple[NodeEvent, ...]


def update_conditions(
    node: str,
    current: Sequence[NodeCondition],
    *,
    pressures: Collection[str],
    problems: Sequence[str],
    now: Time,
    alert_conditions: Sequence[AlertCondition] = (),
) -> NodeConditionsUpdate:
    """Compute the conditions from the current ones; new ones are appended, Ready last."""
    conditions = {condition.type: condition for condition in current}
    conditions.pop(AGENT_STOPPED, None)
    _apply_alert_conditions(conditions, alert_conditions, now)
    reasons: list[str] = []
    for kind, texts in _PRESSURE_TEXT.items():
        under = kind in pressures
        before = conditions.get(kind)
        conditions[kind] = _pressure_condition(kind, before, texts[under], under=under, now=now)
        if before is None or before.status != conditions[kind].status:
            reasons.append(texts[under].event)
    before = conditions.get(READY)
    conditions[READY] = ready = _ready_condition(before, problems, now)
    # As upstream: no event for the first Ready condition of a Node.
    if before is not None and before.status != ready.status:
        reasons.append("NodeReady" if ready.status == TRUE else "NodeNotReady")
    return NodeConditionsUpdate(
        tuple(conditions.values()), tuple(status_event(node, reason) for reason in reasons)
    )


def with_agent_stopped(
    current: Sequence[NodeCondition], message: str, now: Time
) -> tuple[NodeCondition, ...]:
    """The conditions of a Node whose agent is about to stop, in order; the others stay.

    Ready stays, too: the node lifecycle controller sets it to Unknown when the heartbeats are
    overdue, and changes no conditions but those of the kubelet.
    """
    stopped = NodeCondition(
        type=AGENT_STOPPED,
        status=TRUE,
        last_heartbeat_time=now,
        last_transition_time=now,
        reason="StopRequested",
        message=message,
    )
    return *(it for it in current if it.type != AGENT_STOPPED), stopped


def _apply_alert_conditions(
    conditions: dict[str, NodeCondition],
    alert_conditions: Sequence[AlertCondition],
    now: Time,
) -> None:
    firing = {condition.type: condition for condition in alert_conditions}
    for type_ in [
        t for t in conditions if t.startswith(ALERT_CONDITION_PREFIX) and t not in firing
    ]:
        del conditions[type_]
    for type_, alert in firing.items():
        before = conditions.get(type_)
        stays = before is not None and before.status == TRUE
        conditions[type_] = NodeCondition(
            type=type_,
            status=TRUE,
            last_heartbeat_time=now,
            last_transition_time=before.last_transition_time if before and stays else now,
            reason=alert.reason,
            message=alert.message,
        )


def status_event(node: str, reason: str) -> NodeEvent:
    """The event for a new status of the node. Upstream: recordNodeStatusEvent."""
    return NodeEvent(reason=reason, message=f"Node {node} status is now: {reason}")


def is_ready(conditions: Iterable[NodeCondition] | None) -> bool:
    """Whether the condition Ready is True."""
    return any(it.type == READY and it.status == TRUE for it in conditions or ())


def is_taken_for_dead(conditions: Iterable[NodeCondition] | None) -> bool:
    """Whether a controller has set Ready to Unknown, which no node reports of itself."""
    return any(it.type == READY and it.status == UNKNOWN for it in conditions or ())


def aggregate(problems: Iterable[str]) -> str:
    """All distinct problems in one line. Upstream: NewAggregate, apimachinery."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _pressure_condition(
    kind: str, before: NodeCondition | None, text: _ConditionText, *, under: bool, now: Time
) -> NodeCondition:
    status = TRUE if under else FALSE
    if before is not None and before.status == status:
        return structs.replace(before, last_heartbeat_time=now)
    return NodeCondition(
        type=kind,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=now,
        reason=text.reason,
        message=text.message,
    )


def _ready_condition(
    before: NodeCondition | None, problems: Sequence[str], now: Time
) -> NodeCondition:
    status = FALSE if problems else TRUE
    stays = before is not None and before.status == status
    return NodeCondition(
        type=READY,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=before.last_transition_time if before is not None and stays else now,
        reason="KubeletNotReady" if problems else "KubeletReady",
        message=aggregate(problems) if problems else "kubelet is posting ready status",
    )
