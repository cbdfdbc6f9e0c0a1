"""The node's conditions: what they say, and what is told when they change.

Those of others are left as they are. A pressure's reason and message change with its status
alone, those of Ready at once. Upstream: nodestatus/setters.go v1.36.4.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from podstatus.kube.objects.node import NodeCondition
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.pressure import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE

READY = "Ready"
TRUE, FALSE = "True", "False"
ALERT_CONDITION_PREFIX = "alerts.podstatus.dev/"
"""How the types begin of conditions that are ours to state and to take away."""


class NodeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something to tell about the node."""

    reason: str
    message: str
    warning: bool = False


class AlertCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that is True for as long as somebody of ours states it."""

    type: str
    """It begins with `ALERT_CONDITION_PREFIX`: so it is known as ours, also after a restart."""
    reason: str
    message: str = ""


class _ConditionText(msgspec.Struct, frozen=True):
    """How a status of a condition is told: to readers of the Node, and as an event."""

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
    """A node's conditions, and what is to be told about how they came to be."""

    items: tuple[NodeCondition, ...]
    events: tuple[NodeEvent, ...]


def update_conditions(
    node: str,
    current: Sequence[NodeCondition],
    *,
    pressures: frozenset[str],
    problems: Sequence[str],
    now: Time,
    alert_conditions: Sequence[AlertCondition] | None = (),
) -> NodeConditionsUpdate:
    """The conditions that follow on those that are known; new ones come last, Ready at the end.

    `alert_conditions`: None if nobody can say that yet: those of before stay.
    """
    conditions = {condition.type: condition for condition in current}
    _apply_alert_conditions(conditions, alert_conditions, now)
    told: list[str] = []
    for kind, words in _PRESSURE_TEXT.items():
        under = kind in pressures
        before = conditions.get(kind)
        conditions[kind] = _pressure_condition(kind, before, words[under], under=under, now=now)
        if before is None or before.status != conditions[kind].status:
            told.append(words[under].event)
    before = conditions.get(READY)
    conditions[READY] = ready = _ready_condition(before, problems, now)
    # Upstream says nothing of the first Ready condition that a Node has.
    if before is not None and before.status != ready.status:
        told.append("NodeReady" if ready.status == TRUE else "NodeNotReady")
    return NodeConditionsUpdate(
        tuple(conditions.values()), tuple(status_event(node, it) for it in told)
    )


def _apply_alert_conditions(
    conditions: dict[str, NodeCondition],
    alert_conditions: Sequence[AlertCondition] | None,
    now: Time,
) -> None:
    if alert_conditions is None:
        return
    wanted = {it.type: it for it in alert_conditions}
    for type_ in [
        it for it in conditions if it.startswith(ALERT_CONDITION_PREFIX) and it not in wanted
    ]:
        del conditions[type_]
    for type_, it in wanted.items():
        before = conditions.get(type_)
        stays = before is not None and before.status == TRUE
        conditions[type_] = NodeCondition(
            type=type_,
            status=TRUE,
            last_heartbeat_time=now,
            last_transition_time=before.last_transition_time if before and stays else now,
            reason=it.reason,
            message=it.message,
        )


def status_event(node: str, reason: str) -> NodeEvent:
    """The event for a new status of the node. Upstream: recordNodeStatusEvent."""
    return NodeEvent(reason=reason, message=f"Node {node} status is now: {reason}")


def is_ready(conditions: Iterable[NodeCondition] | None) -> bool:
    """Whether these say that the node is Ready."""
    return any(it.type == READY and it.status == TRUE for it in conditions or ())


def aggregate(problems: Iterable[str]) -> str:
    """Several problems in one line, each of them once. Upstream: NewAggregate, apimachinery."""
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
