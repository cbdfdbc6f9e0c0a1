"""What the sync reads and writes of the cache; each call is one moment.

Upstream: the parts of syncBatch and syncPod that hold podStatusesLock, and deletePodStatus,
status_manager.go v1.36.4.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Mapping

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.allocation import PodAllocations
from podstatus.status.notify import CallbackQueue, DeferredObserver
from podstatus.status.ports import OutboxEntry, PodStartupLatencyStateHelper
from podstatus.status.resize_store import ResizeStore
from podstatus.status.store import StatusCache, VersionedStatus

logger = logging.getLogger(__name__)


class StatusStore:
    """The manager's statuses as the sync sees them, under the manager's lock."""

    def __init__(
        self,
        lock: threading.Lock,
        cache: StatusCache,
        resizes: ResizeStore,
        *,
        allocations: PodAllocations,
        startup_latency: PodStartupLatencyStateHelper,
        observer: DeferredObserver,
        callbacks: CallbackQueue,
        clock: Clock,
    ) -> None:
        self._lock = lock
        self._cache = cache
        self._resizes = resizes
        self._allocations = allocations
        self._startup_latency = startup_latency
        self._observer = observer
        self._callbacks = callbacks
        self._clock = clock
        self._observed: dict[PodUID, None] = {}

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """All cached statuses with their versions."""
        with self._lock:
            return self._cache.entries()

    def entry(self, uid: PodUID) -> VersionedStatus | None:
        """The newest status of a pod."""
        with self._lock:
            return self._cache.get(uid)

    def uids(self) -> frozenset[PodUID]:
        """All pods of which anything is known, also from an earlier life."""
        with self._lock:
            return frozenset(self._cache)

    def pop_changed(self) -> tuple[PodUID, ...]:
        """The pods that have a new version since the last call of this, in that order."""
        with self._lock:
            return self._cache.pop_changed()

    def mark_observed(self, uid: PodUID) -> None:
        """Say that the watch shows a pod anew."""
        with self._lock:
            self._observed[uid] = None

    def pop_observed(self) -> tuple[PodUID, ...]:
        """The pods that the watch has shown anew since the last call of this."""
        with self._lock:
            seen, self._observed = tuple(self._observed), {}
        return seen

    def force_next_update(self, uid: PodUID) -> None:
        """Have the next status of a pod count as new, whatever it says."""
        with self._lock:
            self._cache.force_next_update(uid)

    def restamp(self, uid: PodUID, entry: VersionedStatus, status: PodStatus) -> None:
        """Put a status that differs in times only into the entry, if it is still this one."""
        with self._lock:
            self._cache.restamp(uid, entry, status)

    def acknowledge(self, uid: PodUID, entry: VersionedStatus) -> None:
        """Say that the API server has what this entry says."""
        now = Time.from_unix_nanos(self._clock.now())
        with self._lock:
            self._cache.acknowledge(uid, entry)
            if (seconds := entry.unsent_seconds(now)) is not None:
                self._observer.status_synced(seconds)
                self._observer.pod_synced(uid, entry.namespace, entry.name, seconds)
        self._callbacks.flush(wait=False)

    def count_failure(self, failure: str) -> None:
        """Say that a pod could not be synced, and why."""
        self._observer.sync_failed(failure)
        self._callbacks.flush(wait=False)

    def seed(self, entries: Iterable[OutboxEntry]) -> None:
        """Take over what an earlier life of the node could not deliver, unless more is known."""
        now = Time.from_unix_nanos(self._clock.now())
        with self._lock:
            for last in entries:
                self._cache.seed(last, now)

    async def delete_pod_status(self, uid: PodUID) -> None:
        """Forget a pod that is gone, with all that is known of it."""
        with self._lock:
            self._cache.remove(uid)
            self._resizes.remove(uid)
        self._callbacks.flush(wait=False)
        self._startup_latency.delete_pod_startup_state(uid)
        if self._allocations.is_persistent:
            await self._remove_allocation(uid)

    async def _remove_allocation(self, uid: PodUID) -> None:
        try:
            # It may wait for a disk, which the event loop must not.
            await asyncio.to_thread(self._allocations.remove_pod, uid)
        except Exception:
            # Somebody else's code; the pod is gone all the same.
            logger.exception("allocation of a pod that is gone not removed: uid=%s", uid)
