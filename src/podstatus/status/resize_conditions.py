"""The resize conditions of all pods. Not thread-safe: the owner holds the lock."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.resize import (
    NO_RESIZE,
    ResizeConditions,
    backfill_conditions,
    count_in_progress,
    pending_by_reason,
    with_in_progress,
    with_pending,
)
from podstatus.status.notify import DeferredObserver


class ResizeStore:
    """Resize conditions by pod UID.

    An entry stays when both its conditions are cleared. As upstream, the counts are reported when
    an entry is removed, and pending resizes otherwise only when one is added or cleared.
    """

    def __init__(self, observer: DeferredObserver | None) -> None:
        self._conditions: dict[PodUID, ResizeConditions] = {}
        self._observer = observer

    def get(self, uid: PodUID) -> ResizeConditions:
        """Return the pod's resize conditions, or `NO_RESIZE`."""
        return self._conditions.get(uid, NO_RESIZE)

    def all(self) -> Mapping[PodUID, ResizeConditions]:
        return dict(self._conditions)

    def set_pending(
        self, uid: PodUID, reason: str, message: str, generation: int, now: Time
    ) -> bool:
        """Set PodResizePending and return whether its reason or generation changed."""
        old = self.get(uid)
        new, changed = with_pending(old, reason, message, generation, now)
        self._conditions[uid] = new
        if old.pending is None:
            self._count_pending()
        return changed

    def set_in_progress(
        self, uid: PodUID, reason: str, message: str, generation: int, now: Time
    ) -> tuple[int, bool]:
        """Set PodResizeInProgress; return its generation and whether reason or message changed."""
        old = self.get(uid)
        new, generation, changed = with_in_progress(old, reason, message, generation, now)
        self._conditions[uid] = new
        if old.in_progress is None:
            self._count_in_progress()
        return generation, changed

    def clear_pending(self, uid: PodUID) -> None:
        old = self.get(uid)
        if old.pending is not None:
            self._conditions[uid] = structs.replace(old, pending=None)
            self._count_pending()

    def clear_in_progress(self, uid: PodUID) -> int | None:
        """Remove PodResizeInProgress; return its generation, or None if it was not set."""
        old = self.get(uid)
        if old.in_progress is None:
            return None
        self._conditions[uid] = structs.replace(old, in_progress=None)
        self._count_in_progress()
        return old.in_progress.observed_generation

    def backfill(self, pods: Iterable[Pod], now: Time) -> None:
        """Copy the resize conditions from the pods' statuses."""
        for pod in pods:
            old = self.get(pod.uid)
            new = backfill_conditions(old, pod.status, now)
            if new is not old:
                self._conditions[pod.uid] = new
        self._count_pending()
        self._count_in_progress()

    def remove(self, uid: PodUID) -> None:
        """Remove the pod's conditions and report the counts."""
        if self._conditions.pop(uid, None) is not None:
            self._count_in_progress()
            self._count_pending()

    def _count_pending(self) -> None:
        if self._observer is not None:
            self._observer.pending_resizes(pending_by_reason(self._conditions.values()))

    def _count_in_progress(self) -> None:
        if self._observer is not None:
            self._observer.resizes_in_progress(count_in_progress(self._conditions.values()))
