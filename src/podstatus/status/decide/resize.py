"""The two conditions of an in-place resize, kept apart from the status until it is computed.

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
    """What is known about the resize of one pod."""

    pending: PodCondition | None = None
    in_progress: PodCondition | None = None

    def as_tuple(self) -> tuple[PodCondition, ...]:
        """The conditions there are."""
        return tuple(c for c in (self.pending, self.in_progress) if c is not None)


NO_RESIZE = ResizeConditions()


def with_pending(
    conditions: ResizeConditions, reason: str, message: str, generation: int, now: Time
) -> tuple[ResizeConditions, bool]:
    """Say that a resize waits; also whether reason or generation changed.

    There are two reasons to wait: it can never be done, or not yet.
    """
    reason = INFEASIBLE if reason == INFEASIBLE else DEFERRED
    old = conditions.pending
    pending = _condition(POD_RESIZE_PENDING, old, reason, message, generation, now)
    changed = old is None or (old.reason, old.observed_generation) != (reason, generation)
    return structs.replace(conditions, pending=pending), changed


def with_in_progress(
    conditions: ResizeConditions, reason: str, message: str, generation: int, now: Time
) -> tuple[ResizeConditions, int, bool]:
    """Say that a resize is under way; also its generation and whether anything changed.

    The generation is the one it began with, until the condition is cleared. Reason and
    message are kept when neither is given.
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
    """Take over the resize conditions that a status has, reasons as they are."""
    for shown in status.conditions or ():
        details = (None, shown.reason, shown.message, shown.observed_generation, now)
        if shown.type == POD_RESIZE_PENDING:
            pending = _condition(POD_RESIZE_PENDING, *details)
            conditions = structs.replace(conditions, pending=pending)
        elif shown.type == POD_RESIZE_IN_PROGRESS:
            in_progress = _condition(POD_RESIZE_IN_PROGRESS, *details)
            conditions = structs.replace(conditions, in_progress=in_progress)
    return conditions


def pending_by_reason(all_conditions: Iterable[ResizeConditions]) -> dict[str, int]:
    """How many resizes wait, by reason in lower case."""
    return Counter(c.pending.reason.lower() for c in all_conditions if c.pending is not None)


def count_in_progress(all_conditions: Iterable[ResizeConditions]) -> int:
    """How many resizes are under way."""
    return sum(c.in_progress is not None for c in all_conditions)


def _condition(
    condition_type: str,
    old: PodCondition | None,
    reason: str,
    message: str,
    generation: int,
    now: Time,
) -> PodCondition:
    moved = now if old is None or old.reason != reason else old.last_transition_time
    return PodCondition(
        type=condition_type,
        status="True",
        last_probe_time=now,
        last_transition_time=moved,
        observed_generation=generation,
        reason=reason,
        message=message,
    )
