"""Locked access to the status cache for the sync loop; each method is atomic.

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
    """The manager's statuses for the sync; each method takes the manager's lock."""

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
        """Return a snapshot of all cached statuses with their versions."""
        with self._lock:
            return self._cache.entries()

    def entry(self, uid: PodUID) -> VersionedStatus | None:
        """Return the pod's newest status, or None."""
        with self._lock:
            return self._cache.get(uid)

    def uids(self) -> frozenset[PodUID]:
        """Return the UIDs of all cached and restored pods."""
        with self._lock:
            return frozenset(self._cache)

    def pop_changed(self) -> tuple[PodUID, ...]:
        """Return the pods with a new version since the last call, in the order of the updates."""
        with self._lock:
            return self._cache.pop_changed()

    def mark_observed(self, uid: PodUID) -> None:
        """Record that the watch delivered a newer copy of the pod."""
        with self._lock:
            self._observed[uid] = None

    def pop_observed(self) -> tuple[PodUID, ...]:
        """Return the pods that `mark_observed` recorded since the last call."""
        with self._lock:
            observed, self._observed = tuple(self._observed), {}
        return observed

    def force_next_update(self, uid: PodUID) -> None:
        """Treat the pod's next status as changed, even if it is equal."""
        with self._lock:
            self._cache.force_next_update(uid)

    def restamp(self, uid: PodUID, entry: VersionedStatus, status: PodStatus) -> None:
        """Replace the entry's status by one that differs in times only, if `entry` is current."""
        with self._lock:
            self._cache.restamp(uid, entry, status)

    def acknowledge(self, uid: PodUID, entry: VersionedStatus) -> None:
        """Mark the entry's updates as acknowledged by the API server, and report the latency."""
        now = Time.from_unix_nanos(self._clock.now())
        with self._lock:
            self._cache.acknowledge(uid, entry)
            if (seconds := entry.unsent_seconds(now)) is not None:
                self._observer.status_synced(seconds)
                self._observer.pod_synced(uid, entry.namespace, entry.name, seconds)
        self._callbacks.flush(wait=False)

    def count_failure(self, failure: str) -> None:
        """Report a failed sync to the observer."""
        self._observer.sync_failed(failure)
        self._callbacks.flush(wait=False)

    def seed(self, entries: Iterable[OutboxEntry]) -> None:
        """Restore undelivered statuses from before a restart, of pods without an entry."""
        now = Time.from_unix_nanos(self._clock.now())
        with self._lock:
            for undelivered in entries:
                self._cache.seed(undelivered, now)

    async def delete_pod_status(self, uid: PodUID) -> None:
        """Remove all state of a deleted pod. Errors of the allocation state are logged."""
        with self._lock:
            self._cache.remove(uid)
            self._resizes.remove(uid)
        self._callbacks.flush(wait=False)
        self._startup_latency.delete_pod_startup_state(uid)
        if self._allocations.is_persistent:
            await self._remove_allocation(uid)

    async def _remove_allocation(self, uid: PodUID) -> None:
        try:
            # In a thread: disk I/O must not block the event loop.
            await asyncio.to_thread(self._allocations.remove_pod, uid)
        except Exception:
            # External port; the pod is deleted anyway.
            logger.exception("allocation of a deleted pod not removed: uid=%s", uid)
