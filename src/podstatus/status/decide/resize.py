"""The two conditions of an in-place resize, stored separately until a status is generated.

Upstream: the PodResize… methods of status_manager.go v1.36.4.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec import structs

from podstatus.kube.conditions import POD_RESIZE_IN_PROGRESS, POD_RESIZE_PENDING
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time

DEFERRED = "Deferred"
INFEASIBLE = "Infeasible"


class ResizeConditions(msgspec.Struct, frozen=True, kw_only=True):
    """The resize conditions of one pod."""

    pending: PodCondition | None = None
    in_progress: PodCondition | None = None

    def as_tuple(self) -> tuple[PodCondition, ...]:
        """Return the conditions that are set."""
        return tuple(c for c in (self.pending, self.in_progress) if c is not None)


NO_RESIZE = ResizeConditions()


def with_pending(
    conditions: ResizeConditions, reason: str, message: str, generation: int, now: Time
) -> tuple[ResizeConditions, bool]:
    """Set PodResizePending; also return whether its reason or generation changed.

    The reason is Infeasible or Deferred: any reason but Infeasible becomes Deferred.
    """
    reason = INFEASIBLE if reason == INFEASIBLE else DEFERRED
    old = conditions.pending
    pending = _condition(POD_RESIZE_PENDING, old, reason, message, generation, now)
    changed = old is None or (old.reason, old.observed_generation) != (reason, generation)
    return structs.replace(conditions, pending=pending), changed


def with_in_progress(
    conditions: ResizeConditions, reason: str, message: str, generation: int, now: Time
) -> tuple[ResizeConditions, int, bool]:
    """Set PodResizeInProgress; also return its generation and whether reason or message changed.

    The generation of the first call stays until the condition is cleared. If both `reason` and
    `message` are empty, the old ones stay.
    """
    old = conditions.in_progress
    if old is not None:
        generation = old.observed_generation
        if not reason and not message:
            reason, message = old.reason, old.message
    new = _condition(POD_RESIZE_IN_PROGRESS, old, reason, message, generation, now)
    changed = old is None or (old.reason, old.message) != (reason, message)
    return structs.replace(conditions, in_progress=new), generation, changed


def backfill_conditions(
    conditions: ResizeConditions, status: PodStatus, now: Time
) -> ResizeConditions:
    """Copy the resize conditions of a status, with their reasons unchanged."""
    for condition in status.conditions or ():
        details = (None, condition.reason, condition.message, condition.observed_generation, now)
        if condition.type == POD_RESIZE_PENDING:
            pending = _condition(POD_RESIZE_PENDING, *details)
            conditions = structs.replace(conditions, pending=pending)
        elif condition.type == POD_RESIZE_IN_PROGRESS:
            in_progress = _condition(POD_RESIZE_IN_PROGRESS, *details)
            conditions = structs.replace(conditions, in_progress=in_progress)
    return conditions


def pending_by_reason(all_conditions: Iterable[ResizeConditions]) -> dict[str, int]:
    """Return the number of pending resizes by lower-case reason."""
    return Counter(c.pending.reason.lower() for c in all_conditions if c.pending is not None)


def count_in_progress(all_conditions: Iterable[ResizeConditions]) -> int:
    return sum(c.in_progress is not None for c in all_conditions)


def _condition(
    condition_type: str,
    old: PodCondition | None,
    reason: str,
    message: str,
    generation: int,
    now: Time,
) -> PodCondition:
    transition_time = now if old is None or old.reason != reason else old.last_transition_time
    return PodCondition(
        type=condition_type,
        status="True",
        last_probe_time=now,
        last_transition_time=transition_time,
        observed_generation=generation,
        reason=reason,
        message=message,
    )
