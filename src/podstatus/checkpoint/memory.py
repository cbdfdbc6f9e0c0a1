"""State that lives as long as the process, and what all kinds of state have in common.

What is known is one frozen value that is swapped under a lock, so who reads never waits for
who writes. Upstream: stateMemory, allocation/state/state_mem.go v1.36.4.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import structs

from podstatus.kube.encoding.frozen_copy import check_kind, detached
from podstatus.kube.objects.allocation import (
    Allocations,
    PodResourceInfo,
    PodResources,
    ResizeStatuses,
    with_container_resources,
    with_pod_level_resources,
    with_resize_status,
    without_pods,
)
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID, check_uid

Change = Callable[[Allocations], Allocations]


class ResourceRecord:
    """The resources of all pods in one respect: as they are allocated, or actuated."""

    def __init__(self, state: "MemoryState", part: Literal["allocated", "actuated"]) -> None:
        self._state = state
        self._part = part

    def container_resources(self, uid: str, container: str) -> ResourceRequirements | None:
        """The resources of a container, None if nothing is known about it."""
        info = self.pod_resource_info(uid)
        return None if info is None else info.container_resources.get(container)

    def pod_level_resources(self, uid: str) -> ResourceRequirements | None:
        """The resources of a pod as a whole, None if it has none or is not known."""
        info = self.pod_resource_info(uid)
        return None if info is None else info.pod_level_resources

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        """What is known about a pod."""
        return self._pods(self._state.allocations()).get(PodUID(uid))

    def pods(self) -> PodResources:
        """What is known about all pods, at one moment."""
        return dict(self._pods(self._state.allocations()))

    def set_container_resources(
        self, uid: str, container: str, resources: ResourceRequirements
    ) -> None:
        """Remember the resources of a container."""
        check_uid(uid)
        if not isinstance(container, str):
            raise TypeError(f"expected the name of a container, got {type(container).__name__}")
        check_kind(resources, ResourceRequirements)
        taken = detached(resources)
        self._change(lambda pods: with_container_resources(pods, PodUID(uid), container, taken))

    def set_pod_level_resources(self, uid: str, resources: ResourceRequirements | None) -> None:
        """Remember the resources of a pod as a whole; None if it has none."""
        check_uid(uid)
        if resources is not None:
            check_kind(resources, ResourceRequirements)
            resources = detached(resources)
        self._change(lambda pods: with_pod_level_resources(pods, PodUID(uid), resources))

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        """Remember this about a pod, and nothing else."""
        check_uid(uid)
        check_kind(info, PodResourceInfo)
        taken = detached(info)
        self._change(lambda pods: {**pods, PodUID(uid): taken})

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        """Remember this about some pods, in one write."""
        for uid, info in infos.items():
            check_uid(uid)
            check_kind(info, PodResourceInfo)
        taken = {uid: detached(info) for uid, info in infos.items()}
        self._change(lambda pods: {**pods, **taken})

    def _pods(self, allocations: Allocations) -> PodResources:
        return allocations.allocated if self._part == "allocated" else allocations.actuated

    def _change(self, change: Callable[[PodResources], PodResources]) -> None:
        self._state.change(
            lambda old: structs.replace(old, **{self._part: change(self._pods(old))})
        )


class MemoryState:
    """Remembers what is allocated and actuated, and the resize statuses, until it is dropped.

    All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self.allocated = ResourceRecord(self, "allocated")
        self.actuated = ResourceRecord(self, "actuated")
        self._lock = threading.Lock()
        self._current: Allocations | None = None

    def restore(self) -> None:
        """Bring back what was known, once. Any other method does so too if it comes first."""
        self.allocations()

    def allocations(self) -> Allocations:
        """Everything that is known, at one moment."""
        current = self._current
        if current is not None:
            return current
        with self._lock:
            return self._restored()

    def change(self, change: Change) -> None:
        """Replace everything that is known by what the function makes of it.

        For those who bring over the state of another kubelet. The lock is held meanwhile, so
        the function must not call the state.
        """
        with self._lock:
            old = self._restored()
            self._store(old, _taken(change(old), old))

    def resize_status(self, uid: str) -> str | None:
        """The last word on the resize of a pod."""
        return self.allocations().resize_statuses.get(PodUID(uid))

    def set_resize_status(self, uid: str, status: str) -> None:
        """Remember the last word on the resize of a pod; an empty one is none."""
        check_uid(uid)
        _check_word(status)
        self.change(
            lambda old: structs.replace(
                old, resize_statuses=with_resize_status(old.resize_statuses, PodUID(uid), status)
            )
        )

    def remove_pod(self, uid: str) -> None:
        """Forget a pod."""
        with self._lock:
            old = self._restored()
            self._remove(old, {PodUID(uid)})

    def remove_orphaned_pods(self, keep: Iterable[str]) -> None:
        """Forget all pods but these."""
        if isinstance(keep, str):
            raise TypeError(f"expected UIDs, got the text {keep[:40]!r}; put it into a set")
        kept = frozenset(keep)
        for uid in kept:
            check_uid(uid)
        with self._lock:
            old = self._restored()
            known = {*old.allocated, *old.actuated, *old.resize_statuses}
            self._remove(old, known - kept)

    def _restored(self) -> Allocations:
        """What is known. Called with the lock held, as all that follow."""
        if self._current is None:
            self._current = self._load()
        return self._current

    def _remove(self, old: Allocations, gone: set[PodUID]) -> None:
        self._store_removal(
            old,
            Allocations(
                allocated=without_pods(old.allocated, gone),
                actuated=without_pods(old.actuated, gone),
                resize_statuses=without_pods(old.resize_statuses, gone),
            ),
        )

    def _load(self) -> Allocations:
        return Allocations()

    def _store(self, old: Allocations, new: Allocations) -> None:  # noqa: ARG002
        self._current = new

    def _store_removal(self, old: Allocations, new: Allocations) -> None:
        self._store(old, new)


def _taken(new: object, old: Allocations) -> Allocations:
    """What somebody made of the allocations, checked, and nothing of it shared."""
    if not isinstance(new, Allocations):
        raise TypeError(f"expected Allocations, got {type(new).__name__}; return them")
    return Allocations(
        allocated=_taken_pods(new.allocated, old.allocated),
        actuated=_taken_pods(new.actuated, old.actuated),
        resize_statuses=_taken_words(new.resize_statuses, old.resize_statuses),
    )


def _taken_pods(pods: PodResources, old: PodResources) -> PodResources:
    if pods is old:
        return old
    for uid, info in pods.items():
        check_uid(uid)
        check_kind(info, PodResourceInfo)
    return {uid: detached(info) for uid, info in pods.items()}


def _taken_words(words: ResizeStatuses, old: ResizeStatuses) -> ResizeStatuses:
    if words is old:
        return old
    for uid, word in words.items():
        check_uid(uid)
        _check_word(word)
    return dict(words)


def _check_word(status: object) -> None:
    if not isinstance(status, str):
        raise TypeError(f"expected a resize status, got {type(status).__name__}; give its name")
