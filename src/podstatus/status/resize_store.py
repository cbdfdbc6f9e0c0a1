"""The resize conditions of all pods, and how many there are. Not locked: its owner is."""

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
from podstatus.status.ports import StatusObserver


class ResizeStore:
    """Resize conditions by pod UID.

    An entry stays when both its conditions are cleared: upstream counts anew when it goes,
    and counts pending resizes only then and when one comes or is cleared.
    """

    def __init__(self, observer: StatusObserver) -> None:
        self._conditions: dict[PodUID, ResizeConditions] = {}
        self._observer = observer

    def get(self, uid: PodUID) -> ResizeConditions:
        """What is known about the resize of this pod."""
        return self._conditions.get(uid, NO_RESIZE)

    def all(self) -> Mapping[PodUID, ResizeConditions]:
        """The conditions of all pods at this moment."""
        return dict(self._conditions)

    def set_pending(
        self, uid: PodUID, reason: str, message: str, generation: int, now: Time
    ) -> bool:
        """Say that a resize waits; whether reason or generation changed."""
        old = self.get(uid)
        new, changed = with_pending(old, reason, message, generation, now)
        self._conditions[uid] = new
        if old.pending is None:
            self._count_pending()
        return changed

    def set_in_progress(
        self, uid: PodUID, reason: str, message: str, generation: int, now: Time
    ) -> tuple[int, bool]:
        """Say that a resize is under way; its generation and whether anything changed."""
        old = self.get(uid)
        new, generation, changed = with_in_progress(old, reason, message, generation, now)
        self._conditions[uid] = new
        if old.in_progress is None:
            self._count_in_progress()
        return generation, changed

    def clear_pending(self, uid: PodUID) -> None:
        """Say that no resize waits."""
        old = self.get(uid)
        if old.pending is not None:
            self._conditions[uid] = structs.replace(old, pending=None)
            self._count_pending()

    def clear_in_progress(self, uid: PodUID) -> int | None:
        """Say that no resize is under way; the generation of the one that was."""
        old = self.get(uid)
        if old.in_progress is None:
            return None
        self._conditions[uid] = structs.replace(old, in_progress=None)
        self._count_in_progress()
        return old.in_progress.observed_generation

    def backfill(self, pods: Iterable[Pod], now: Time) -> None:
        """Take over the resize conditions that the pods' statuses have."""
        for pod in pods:
            known = self.get(pod.uid)
            found = backfill_conditions(known, pod.status, now)
            if found is not known:
                self._conditions[pod.uid] = found
        self._count_pending()
        self._count_in_progress()

    def remove(self, uid: PodUID) -> None:
        """Forget the pod."""
        if self._conditions.pop(uid, None) is not None:
            self._count_in_progress()
            self._count_pending()

    def _count_pending(self) -> None:
        self._observer.pending_resizes(pending_by_reason(self._conditions.values()))

    def _count_in_progress(self) -> None:
        self._observer.resizes_in_progress(count_in_progress(self._conditions.values()))
