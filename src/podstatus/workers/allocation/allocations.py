"""What the node has granted to pods, and what they have of it; both outlive the agent.

*Granted* is what the node has set aside for a pod, *in force* what was last asked of the runtime
for it. Of a pod that was never resized nothing is remembered as being in force: it is what was
granted. So the order of the writes matters: what is in force is on the disk before another
grant is.

Upstream: allocation/allocation_manager.go and the actuated state of kuberuntime_manager.go
v1.36.4, which remembers both of every pod.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from podstatus.kube.encoding.wire import FrozenMap
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.status.allocation import allocation_from_pod
from podstatus.workers.resize.allocated_pod import with_allocation, with_larger_requests
from podstatus.workers.resize.plan import resizable_containers


class ResourceInfoStore(Protocol):
    """The resources of pods in one respect. It may wait for a disk when it is told something."""

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        """What is known about a pod."""

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        """Remember this about a pod; raises OSError if it cannot, and then nothing changed."""

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        """The same about some pods at once: all of it, or nothing."""


class AllocationStore(Protocol):
    """What is remembered across restarts. `podstatus.FileState` is one."""

    @property
    def allocated(self) -> ResourceInfoStore:
        """What was granted."""

    @property
    def actuated(self) -> ResourceInfoStore:
        """What is in force."""


class AllocationManager:
    """Says and remembers what pods may use. For one event loop."""

    def __init__(self, store: AllocationStore | None = None) -> None:
        """Without books it is forgotten when the agent ends."""
        store = store or _InMemoryStore()
        self._allocated, self._actuated = store.allocated, store.actuated
        self._unpersisted: dict[PodUID, PodResourceInfo] = {}
        """Not on the disk yet."""
        self._persist_queue: dict[PodUID, Pod] = {}
        """Those of them that somebody waits for."""
        self._write_lock = asyncio.Lock()
        self._listeners: list[Callable[[PodUID], object]] = []

    def add_listener(self, listener: Callable[[PodUID], object]) -> None:
        """Have somebody told of whom something else is known from now on."""
        self._listeners.append(listener)

    def _notify(self, uid: PodUID) -> None:
        for listener in self._listeners:
            listener(uid)

    # What is asked

    def allocated(self, pod: Pod) -> Pod:
        """The pod with what it was granted, also before a restart; itself if that is the same."""
        promised = self._unpersisted.get(pod.uid)
        return with_allocation(pod, promised or self._allocated.pod_resource_info(pod.uid))

    def persisted(self, pod: Pod) -> Pod:
        """The pod with what is on the disk as its grant."""
        return with_allocation(pod, self._allocated.pod_resource_info(pod.uid))

    def reserved(self, pod: Pod) -> Pod:
        """The pod with what nobody else can have: its grant, and what it has not given back."""
        before = self.actuated(pod.uid)
        if before is None and pod.uid in self._unpersisted:
            # It is not on the disk yet that this is in force, and it is all the same.
            before = self._allocated.pod_resource_info(pod.uid)
        return with_larger_requests(self.allocated(pod), before)

    def actuated(self, uid: PodUID) -> PodResourceInfo | None:
        """What was last asked of the runtime for the pod; None if that is what was granted."""
        return self._actuated.pod_resource_info(uid)

    # What is decided

    def reserve(self, pod: Pod) -> None:
        """The node takes the pod as it is now, whatever it asks for before it is started."""
        if self._allocated.pod_resource_info(pod.uid) is None:
            self._unpersisted.setdefault(pod.uid, allocation_from_pod(pod))
            self._notify(pod.uid)

    async def persist(self, pod: Pod) -> None:
        """Its grant is on the disk when this returns."""
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
        """Write the grants of all who wait: all pods are in one file, however many are new."""
        # Another who waited for this pod too may have given up for both.
        waiting = {pod.uid: pod} | self._persist_queue
        new = [pod for pod in waiting.values() if not self._is_persisted(pod.uid)]
        promised = {pod.uid: self._unpersisted.get(pod.uid) for pod in new}
        infos = {pod.uid: promised[pod.uid] or allocation_from_pod(pod) for pod in new}
        await asyncio.to_thread(self._allocated.set_pod_resource_infos, infos)
        for uid, info in promised.items():
            # A grant may have been made meanwhile, and is about to be written.
            if self._unpersisted.get(uid) is info:
                self._unpersisted.pop(uid, None)
            self._notify(uid)

    def _is_persisted(self, uid: PodUID) -> bool:
        return self._allocated.pod_resource_info(uid) is not None

    async def allocate(self, pod: Pod) -> None:
        """The pod is granted what it asks for; from now on nobody else is."""
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
        """These containers, or the pod as a `pod_level` too, have what the pod says now."""
        if self.actuated(pod.uid) is None:
            return  # without waiting for those who write
        async with self._write_lock:
            known = self.actuated(pod.uid)
            if known is None:
                return
            now = {c.name: c.resources for c in resizable_containers(pod) if c.name in containers}
            info = PodResourceInfo(
                container_resources=FrozenMap({**known.container_resources, **now}),
                pod_level_resources=pod.spec.resources if pod_level else known.pod_level_resources,
            )
            if info != known:
                await asyncio.to_thread(self._actuated.set_pod_resource_info, pod.uid, info)
                self._notify(pod.uid)

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Forget the promises to all pods but these."""
        for uid in self._unpersisted.keys() - set(uids):
            del self._unpersisted[uid]
            self._notify(uid)


class _InMemoryResourceInfoStore:
    def __init__(self) -> None:
        self._pods: dict[str, PodResourceInfo] = {}

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        return self._pods.get(uid)

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        self._pods[uid] = info

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        for uid, info in infos.items():
            self._pods[uid] = info


class _InMemoryStore:
    def __init__(self) -> None:
        self.allocated = _InMemoryResourceInfoStore()
        self.actuated = _InMemoryResourceInfoStore()
