"""Allocated and actuated resources and resize statuses, in memory or in a kubelet's files.

The state is one frozen value that is swapped under a lock, so readers never wait for a writer.
`FileState` survives a restart: a change is on disk before it takes effect in memory. Upstream
changes memory first, and keeps the change even if it cannot be stored.

Upstream: stateMemory, allocation/state/state_mem.go, and stateCheckpoint,
allocation/state/state_checkpoint.go v1.36.4.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import structs

from podstatus.checkpoint.atomic_dir import AtomicDirectory
from podstatus.checkpoint.errors import (
    CheckpointWriteError,
    DamagedCheckpointError,
    UnsupportedStateError,
)
from podstatus.checkpoint.formats import KUBELET_V1_36, CheckpointFile, CheckpointFormat
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.checkpoint.formats.v1_28 import UnsupportedFieldError
from podstatus.kube.encoding.frozen_copy import freeze, require_type
from podstatus.kube.objects.allocation import (
    Allocations,
    PodResourceInfo,
    PodResources,
    ResizeStatuses,
    with_container_resources,
    with_pod_level_resources,
    with_resize_status,
    without_container,
    without_pods,
)
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID, check_uid

AllocationsUpdate = Callable[[Allocations], Allocations]


class PodResourceState:
    """The allocated, or the actuated, resources of all pods. Thread-safe."""

    def __init__(self, state: "MemoryState", part: Literal["allocated", "actuated"]) -> None:
        self._state = state
        self._part = part

    def container_resources(self, uid: str, container: str) -> ResourceRequirements | None:
        """Return the resources of a container, None if there is no entry."""
        info = self.pod_resource_info(uid)
        return None if info is None else info.container_resources.get(container)

    def pod_level_resources(self, uid: str) -> ResourceRequirements | None:
        """Return the pod-level resources, None if the pod has none or no entry."""
        info = self.pod_resource_info(uid)
        return None if info is None else info.pod_level_resources

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        """Return the entry of a pod, None if there is none."""
        return self._pods(self._state.allocations()).get(PodUID(uid))

    def pods(self) -> PodResources:
        """Return a consistent snapshot of the entries of all pods."""
        return dict(self._pods(self._state.allocations()))

    def set_container_resources(
        self, uid: str, container: str, resources: ResourceRequirements
    ) -> None:
        check_uid(uid)
        if not isinstance(container, str):
            raise TypeError(f"expected the name of a container, got {type(container).__name__}")
        require_type(resources, ResourceRequirements)
        frozen = freeze(resources)
        self._update(lambda pods: with_container_resources(pods, PodUID(uid), container, frozen))

    def set_pod_level_resources(self, uid: str, resources: ResourceRequirements | None) -> None:
        """Set the pod-level resources; None removes them."""
        check_uid(uid)
        if resources is not None:
            require_type(resources, ResourceRequirements)
            resources = freeze(resources)
        self._update(lambda pods: with_pod_level_resources(pods, PodUID(uid), resources))

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        """Set the entry of a pod, replacing all of it."""
        self.set_pod_resource_infos({PodUID(uid): info})

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        """Set the entries of several pods in one write."""
        for uid, info in infos.items():
            check_uid(uid)
            require_type(info, PodResourceInfo)
        frozen = {uid: freeze(info) for uid, info in infos.items()}
        self._update(lambda pods: {**pods, **frozen})

    def _pods(self, allocations: Allocations) -> PodResources:
        return allocations.allocated if self._part == "allocated" else allocations.actuated

    def _update(self, update: Callable[[PodResources], PodResources]) -> None:
        self._state.update(
            lambda old: structs.replace(old, **{self._part: update(self._pods(old))})
        )


class MemoryState:
    """Allocated and actuated resources and resize statuses, in memory only.

    Thread-safe.
    """

    def __init__(self) -> None:
        self.allocated = PodResourceState(self, "allocated")
        self.actuated = PodResourceState(self, "actuated")
        self._lock = threading.Lock()
        self._current: Allocations | None = None

    def restore(self) -> None:
        """Load the stored state, once. All other methods do so on first use."""
        self.allocations()

    def allocations(self) -> Allocations:
        """Return the whole state, a consistent snapshot."""
        current = self._current
        if current is not None:
            return current
        with self._lock:
            return self._restore_locked()

    def update(self, update: AllocationsUpdate) -> None:
        """Replace the whole state by the result of the function.

        Used to import the state of another kubelet. The function is called with the lock held, so
        it must not use the state object.
        """
        with self._lock:
            old = self._restore_locked()
            self._store(old, _checked_allocations(update(old), old))

    def resize_status(self, uid: str) -> str | None:
        """Return the resize status of a pod, None if there is none."""
        return self.allocations().resize_statuses.get(PodUID(uid))

    def set_resize_status(self, uid: str, status: str) -> None:
        """Set the resize status of a pod; an empty one removes it."""
        check_uid(uid)
        _check_resize_status(status)
        self.update(
            lambda old: structs.replace(
                old, resize_statuses=with_resize_status(old.resize_statuses, PodUID(uid), status)
            )
        )

    @property
    def stores_requests_only(self) -> bool:
        """Whether only requests of regular containers can be stored."""
        return False

    def remove_pod(self, uid: str) -> None:
        with self._lock:
            old = self._restore_locked()
            self._remove(old, {PodUID(uid)})

    def remove_container(self, uid: str, container: str) -> None:
        """Remove the resources of one container; with the last one, the entry of its pod.

        Upstream: deleteContainer, status/state/state_mem.go v1.28.0, which also removes the resize
        status of a pod without an entry.
        """
        pod = PodUID(uid)
        with self._lock:
            old = self._restore_locked()
            new = structs.replace(
                old,
                allocated=without_container(old.allocated, pod, container),
                actuated=without_container(old.actuated, pod, container),
            )
            if pod in old.allocated and pod not in new.allocated:
                statuses = without_pods(old.resize_statuses, {pod})
                new = structs.replace(new, resize_statuses=statuses)
            self._store_removal(old, new)

    def clear(self) -> None:
        """Remove all entries of all pods. Upstream: ClearState, status/state v1.28.0."""
        with self._lock:
            self._store_removal(self._restore_locked(), Allocations())

    def remove_orphaned_pods(self, active_uids: Iterable[str]) -> None:
        """Remove the entries of all pods except these."""
        if isinstance(active_uids, str):
            raise TypeError(f"expected a set of UIDs, got the string {active_uids[:40]!r}")
        active = frozenset(active_uids)
        for uid in active:
            check_uid(uid)
        with self._lock:
            old = self._restore_locked()
            entries = {*old.allocated, *old.actuated, *old.resize_statuses}
            self._remove(old, entries - active)

    def _restore_locked(self) -> Allocations:
        """Return the state, loading it first if needed. This and all below: lock held."""
        if self._current is None:
            self._current = self._load()
        return self._current

    def _remove(self, old: Allocations, uids: set[PodUID]) -> None:
        self._store_removal(
            old,
            Allocations(
                allocated=without_pods(old.allocated, uids),
                actuated=without_pods(old.actuated, uids),
                resize_statuses=without_pods(old.resize_statuses, uids),
            ),
        )

    def _load(self) -> Allocations:
        return Allocations()

    def _store(self, old: Allocations, new: Allocations) -> None:  # noqa: ARG002
        self._current = new

    def _store_removal(self, old: Allocations, new: Allocations) -> None:
        self._store(old, new)


def _checked_allocations(new: object, old: Allocations) -> Allocations:
    """Validate the state that a caller returned, and copy it so that nothing is shared."""
    if not isinstance(new, Allocations):
        raise TypeError(f"expected Allocations, got {type(new).__name__}; return the new state")
    return Allocations(
        allocated=_checked_pods(new.allocated, old.allocated),
        actuated=_checked_pods(new.actuated, old.actuated),
        resize_statuses=_checked_resize_statuses(new.resize_statuses, old.resize_statuses),
    )


def _checked_pods(pods: PodResources, old: PodResources) -> PodResources:
    if pods is old:
        return old
    for uid, info in pods.items():
        check_uid(uid)
        require_type(info, PodResourceInfo)
    return {uid: freeze(info) for uid, info in pods.items()}


def _checked_resize_statuses(statuses: ResizeStatuses, old: ResizeStatuses) -> ResizeStatuses:
    if statuses is old:
        return old
    for uid, status in statuses.items():
        check_uid(uid)
        _check_resize_status(status)
    return dict(statuses)


def _check_resize_status(status: object) -> None:
    if not isinstance(status, str):
        raise TypeError(f"expected a resize status as str, got {type(status).__name__}")


logger = logging.getLogger(__name__)


class FileState(MemoryState):
    """Allocated and actuated resources and resize statuses, stored in a directory.

    Restoring raises UnreadableCheckpointError or DamagedCheckpointError and leaves the file alone;
    with the format of v1.28, which creates its file at once, also CheckpointWriteError. A change
    raises CheckpointWriteError or UnsupportedStateError, and then has no effect; when it returns,
    it is on disk. Quantities are restored in Go's canonical form (`1000m` as `1`), so compare them
    with `Quantity.compare`. A removal is stored by the next change; with the format of v1.28 at
    once, unless the write fails. Only one process at a time may use the directory.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, format: CheckpointFormat = KUBELET_V1_36
    ) -> None:
        super().__init__()
        if not os.fspath(directory):
            raise ValueError("the directory name is empty; use `.` for the current directory")
        if not isinstance(format, CheckpointFormat):
            raise TypeError(
                f"expected a CheckpointFormat, got {type(format).__name__}; use KUBELET_V1_36 or "
                "KUBELET_V1_28"
            )
        self._directory = AtomicDirectory(Path(directory).absolute())
        self._format = format
        self._contents: dict[str, bytes] = {}
        """The content of each file, as far as known."""
        self._dirty: set[str] = set()
        """Files with old or new content after a failed write; the next change writes them."""

    @property
    def stores_requests_only(self) -> bool:
        """Whether the format stores only requests of regular containers."""
        return self._format.requests_only

    def _load(self) -> Allocations:
        allocations = Allocations()
        for file in self._format.files:
            allocations = self._restore_file(file, allocations)
        for file in self._format.files:
            self._directory.remove_temporary_files(file.name)
        if not self._directory.is_writable():
            logger.warning(
                "checkpoint directory is not writable: directory=%s", self._directory.path("")
            )
        return structs.replace(
            allocations,
            allocated=_frozen_copies(allocations.allocated),
            actuated=_frozen_copies(allocations.actuated),
        )

    def _restore_file(self, file: CheckpointFile, onto: Allocations) -> Allocations:
        text = self._directory.read(file.name)
        if text is None:
            self._contents.pop(file.name, None)
            if self._format.write_through:
                self._write(file, file.encode_content(onto))
            return onto
        try:
            content = file.unwrap(text)
            restored = file.restore(content, onto)
        except MalformedError as error:
            raise DamagedCheckpointError(self._directory.path(file.name), str(error)) from error
        self._contents[file.name] = content
        logger.info("checkpoint restored: file=%s", self._directory.path(file.name))
        return restored

    def _store(self, old: Allocations, new: Allocations) -> None:
        # Encode all files first: a value that cannot be encoded must not leave a partial write.
        changed = [
            (file, self._encode(file, new))
            for file in self._format.files
            if self._format.write_through
            or file.name in self._dirty
            or _any_differs(old, new, file.parts)
        ]
        current = old
        for number, (file, content) in enumerate(changed):
            try:
                self._write(file, content)
            except CheckpointWriteError as error:
                error.stored = tuple(done.name for done, _ in changed[:number])
                raise
            stored = {part: getattr(new, part) for part in file.parts}
            current = self._current = structs.replace(current, **stored)

    def _store_removal(self, old: Allocations, new: Allocations) -> None:
        if self._format.write_through:
            try:
                self._store(old, new)
            except CheckpointWriteError as error:
                logger.warning(
                    "cannot store the removal of an allocation, will retry with the next change: "
                    "error=%s",
                    error,
                )
        self._current = new

    def _encode(self, file: CheckpointFile, allocations: Allocations) -> bytes:
        try:
            return file.encode_content(allocations)
        except UnsupportedFieldError as error:
            raise UnsupportedStateError(self._directory.path(file.name), str(error)) from error

    def _write(self, file: CheckpointFile, content: bytes) -> None:
        # Upstream compares checksums, which can be equal for different contents.
        if self._contents.get(file.name) == content:
            return
        self._contents.pop(file.name, None)
        self._dirty.add(file.name)
        self._directory.write(file.name, file.wrap(content))
        self._dirty.remove(file.name)
        self._contents[file.name] = content


def _any_differs(old: Allocations, new: Allocations, parts: tuple[str, ...]) -> bool:
    return any(getattr(old, part) is not getattr(new, part) for part in parts)


def _frozen_copies(pods: PodResources) -> PodResources:
    return {uid: freeze(info) for uid, info in pods.items()}
