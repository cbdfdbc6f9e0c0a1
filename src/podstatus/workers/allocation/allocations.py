"""Allocated and actuated resources of pods, persisted across restarts of the agent.

*Allocated* resources are reserved for a pod by the node; *actuated* resources are those last
requested from the runtime. A pod that was never resized has no actuated record: it equals the
allocation. Therefore the actuated record is written before a new allocation.

Upstream: allocation/allocation_manager.go and the actuated state of kuberuntime_manager.go
v1.36.4, which stores both for every pod.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from podstatus.kube.encoding.wire_struct import FrozenMap
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.status.pod_allocations import allocation_from_pod
from podstatus.workers.resize.allocated_pod import with_allocation, with_larger_requests
from podstatus.workers.resize.plan import resizable_containers


class ResourceInfoStore(Protocol):
    """Stored resources of pods, either allocated or actuated. Setters may block on disk I/O."""

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        """The stored resources of a pod; None if there are none."""

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        """Store a pod's resources. Raises OSError on failure, with nothing changed."""

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        """Store the resources of several pods atomically. Raises OSError on failure."""


class AllocationStore(Protocol):
    """The two stores that survive a restart. Implemented by `podstatus.FileState`."""

    @property
    def allocated(self) -> ResourceInfoStore:
        """Resources reserved for pods by the node."""

    @property
    def actuated(self) -> ResourceInfoStore:
        """Resources last requested from the runtime."""


class AllocationManager:
    """Tracks and persists the resources of pods; the only writer of its store.

    Not thread-safe: for one event loop.
    """

    def __init__(self, store: AllocationStore) -> None:
        self._allocated, self._actuated = store.allocated, store.actuated
        self._unpersisted: dict[PodUID, PodResourceInfo] = {}
        """Allocations that are not on disk yet."""
        self._persist_queue: dict[PodUID, Pod] = {}
        """Pods for which a `persist` call is waiting."""
        self._write_lock = asyncio.Lock()
        self._listeners: list[Callable[[PodUID], object]] = []

    def add_listener(self, listener: Callable[[PodUID], object]) -> None:
        """Call `listener` with the UID of each pod whose resources change."""
        self._listeners.append(listener)

    def _notify(self, uid: PodUID) -> None:
        for listener in self._listeners:
            listener(uid)

    # Queries

    def allocated(self, pod: Pod) -> Pod:
        """The pod with its allocated resources; the same object if they equal its spec."""
        unpersisted = self._unpersisted.get(pod.uid)
        return with_allocation(pod, unpersisted or self._allocated.pod_resource_info(pod.uid))

    def persisted(self, pod: Pod) -> Pod:
        """The pod with its allocation as stored on disk."""
        return with_allocation(pod, self._allocated.pod_resource_info(pod.uid))

    def reserved(self, pod: Pod) -> Pod:
        """The pod with the larger of its allocated and actuated requests."""
        before = self.actuated(pod.uid)
        if before is None and pod.uid in self._unpersisted:
            # Still actuated, though the actuated record is not written yet.
            before = self._allocated.pod_resource_info(pod.uid)
        return with_larger_requests(self.allocated(pod), before)

    def actuated(self, uid: PodUID) -> PodResourceInfo | None:
        """The actuated resources of a pod; None if they equal the allocation."""
        return self._actuated.pod_resource_info(uid)

    # Updates

    def reserve(self, pod: Pod) -> None:
        """Allocate an admitted pod's requests in memory, unless it has an allocation."""
        if self._allocated.pod_resource_info(pod.uid) is None:
            self._unpersisted.setdefault(pod.uid, allocation_from_pod(pod))
            self._notify(pod.uid)

    async def persist(self, pod: Pod) -> None:
        """Return once the pod's allocation is on disk. Raises OSError."""
        if self._is_persisted(pod.uid):
            return
        self._persist_queue[pod.uid] = pod
        try:
            async with self._write_lock:
                if not self._is_persisted(pod.uid):
                    await self._persist_all(pod)
        finally:
            self._persist_queue.pop(pod.uid, None)

    async def _persist_all(self, pod: Pod) -> None:
        """Write the allocations of all waiting pods at once: they share one file."""
        # A cancelled `persist` call for the same pod may have removed it from the queue.
        waiting = {pod.uid: pod} | self._persist_queue
        new = [pod for pod in waiting.values() if not self._is_persisted(pod.uid)]
        unpersisted = {pod.uid: self._unpersisted.get(pod.uid) for pod in new}
        infos = {pod.uid: unpersisted[pod.uid] or allocation_from_pod(pod) for pod in new}
        await asyncio.to_thread(self._allocated.set_pod_resource_infos, infos)
        for uid, info in unpersisted.items():
            # Keep an allocation that `allocate` has made meanwhile and is about to write.
            if self._unpersisted.get(uid) is info:
                self._unpersisted.pop(uid, None)
            self._notify(uid)

    def _is_persisted(self, uid: PodUID) -> bool:
        return self._allocated.pod_resource_info(uid) is not None

    async def allocate(self, pod: Pod) -> None:
        """Allocate the resources in the pod's spec and write them to disk. Raises OSError."""
        self._unpersisted[pod.uid] = info = allocation_from_pod(pod)
        self._notify(pod.uid)
        try:
            async with self._write_lock:
                before = self._allocated.pod_resource_info(pod.uid)
                if before is not None and self.actuated(pod.uid) is None:
                    await asyncio.to_thread(self._actuated.set_pod_resource_info, pod.uid, before)
                await asyncio.to_thread(self._allocated.set_pod_resource_info, pod.uid, info)
        finally:
            if self._unpersisted.get(pod.uid) is info:
                del self._unpersisted[pod.uid]
            self._notify(pod.uid)

    async def set_actuated(
        self, pod: Pod, containers: Collection[str], *, pod_level: bool = False
    ) -> None:
        """Record that these containers (and the pod level) have the resources in `pod`."""
        if self.actuated(pod.uid) is None:
            return  # without waiting for the write lock
        async with self._write_lock:
            record = self.actuated(pod.uid)
            if record is None:
                return
            current = {
                c.name: c.resources for c in resizable_containers(pod) if c.name in containers
            }
            info = PodResourceInfo(
                container_resources=FrozenMap({**record.container_resources, **current}),
                pod_level_resources=pod.spec.resources if pod_level else record.pod_level_resources,
            )
            if info != record:
                await asyncio.to_thread(self._actuated.set_pod_resource_info, pod.uid, info)
                self._notify(pod.uid)

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Drop the allocations that are not on disk of all pods except these."""
        for uid in self._unpersisted.keys() - set(uids):
            del self._unpersisted[uid]
            self._notify(uid)
