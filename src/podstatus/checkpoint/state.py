"""Allocated and actuated resources and resize statuses, in memory or in a kubelet's files.

The state is one frozen value that is swapped under a lock, so a reader never waits for a writer.
`FileState` survives a restart: it writes a change to disk before it takes effect in memory.
Upstream changes memory first, and keeps the change if it cannot be stored.

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
    without_pods,
)
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID, check_uid

AllocationsUpdate = Callable[[Allocations], Allocations]


class PodResourceState:
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
        require_type(resources, ResourceRequirements)
        taken = freeze(resources)
        self._update(lambda pods: with_container_resources(pods, PodUID(uid), container, taken))

    def set_pod_level_resources(self, uid: str, resources: ResourceRequirements | None) -> None:
        """Remember the resources of a pod as a whole; None if it has none."""
        check_uid(uid)
        if resources is not None:
            require_type(resources, ResourceRequirements)
            resources = freeze(resources)
        self._update(lambda pods: with_pod_level_resources(pods, PodUID(uid), resources))

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        """Remember this about a pod, and nothing else."""
        check_uid(uid)
        require_type(info, PodResourceInfo)
        taken = freeze(info)
        self._update(lambda pods: {**pods, PodUID(uid): taken})

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        """Remember this about some pods, in one write."""
        for uid, info in infos.items():
            check_uid(uid)
            require_type(info, PodResourceInfo)
        taken = {uid: freeze(info) for uid, info in infos.items()}
        self._update(lambda pods: {**pods, **taken})

    def _pods(self, allocations: Allocations) -> PodResources:
        return allocations.allocated if self._part == "allocated" else allocations.actuated

    def _update(self, update: Callable[[PodResources], PodResources]) -> None:
        self._state.update(
            lambda old: structs.replace(old, **{self._part: update(self._pods(old))})
        )


class MemoryState:
    """Remembers what is allocated and actuated, and the resize statuses, until it is dropped.

    All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self.allocated = PodResourceState(self, "allocated")
        self.actuated = PodResourceState(self, "actuated")
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
            return self._restore_locked()

    def update(self, update: AllocationsUpdate) -> None:
        """Replace everything that is known by what the function makes of it.

        For those who bring over the state of another kubelet. The lock is held meanwhile, so
        the function must not call the state.
        """
        with self._lock:
            old = self._restore_locked()
            self._store(old, _checked_allocations(update(old), old))

    def resize_status(self, uid: str) -> str | None:
        """The last word on the resize of a pod."""
        return self.allocations().resize_statuses.get(PodUID(uid))

    def set_resize_status(self, uid: str, status: str) -> None:
        """Remember the last word on the resize of a pod; an empty one is none."""
        check_uid(uid)
        _check_resize_status(status)
        self.update(
            lambda old: structs.replace(
                old, resize_statuses=with_resize_status(old.resize_statuses, PodUID(uid), status)
            )
        )

    def remove_pod(self, uid: str) -> None:
        """Forget a pod."""
        with self._lock:
            old = self._restore_locked()
            self._remove(old, {PodUID(uid)})

    def remove_orphaned_pods(self, active_uids: Iterable[str]) -> None:
        """Forget all pods but these."""
        if isinstance(active_uids, str):
            raise TypeError(f"expected UIDs, got the text {active_uids[:40]!r}; put it into a set")
        kept = frozenset(active_uids)
        for uid in kept:
            check_uid(uid)
        with self._lock:
            old = self._restore_locked()
            known = {*old.allocated, *old.actuated, *old.resize_statuses}
            self._remove(old, known - kept)

    def _restore_locked(self) -> Allocations:
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


def _checked_allocations(new: object, old: Allocations) -> Allocations:
    """What somebody made of the allocations, checked, and nothing of it shared."""
    if not isinstance(new, Allocations):
        raise TypeError(f"expected Allocations, got {type(new).__name__}; return them")
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


def _checked_resize_statuses(words: ResizeStatuses, old: ResizeStatuses) -> ResizeStatuses:
    if words is old:
        return old
    for uid, word in words.items():
        check_uid(uid)
        _check_resize_status(word)
    return dict(words)


def _check_resize_status(status: object) -> None:
    if not isinstance(status, str):
        raise TypeError(f"expected a resize status, got {type(status).__name__}; give its name")


logger = logging.getLogger(__name__)


class FileState(MemoryState):
    """Remembers in a folder what is allocated and actuated, and the resize statuses.

    Restoring raises UnreadableCheckpointError or DamagedCheckpointError, and leaves the file
    alone; with the format of v1.28, which makes its file at once, also CheckpointWriteError. A
    change raises CheckpointWriteError or UnsupportedStateError, and then has changed nothing;
    when it returns, it is on the disk. Amounts come back as Go spells them (`1000m` as `1`), so
    compare them by `Quantity.compare`. A removal is not stored by itself (with the
    format of v1.28 it is, if the disk lets us): the next change stores it. One process at a
    time may use the folder.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, format: CheckpointFormat = KUBELET_V1_36
    ) -> None:
        super().__init__()
        if not os.fspath(folder):
            raise ValueError("the name of the folder is empty; name one, or `.` for this one")
        if not isinstance(format, CheckpointFormat):
            raise TypeError(
                f"expected a Format, got {type(format).__name__}; KUBELET_V1_36 and KUBELET_V1_28 "
                "are those there are"
            )
        self._directory = AtomicDirectory(Path(folder).absolute())
        self._format = format
        self._contents: dict[str, bytes] = {}
        """What each file holds, as far as we know."""
        self._dirty: set[str] = set()
        """The files that a failed write left old or new; the next change writes them."""

    def _load(self) -> Allocations:
        allocations = Allocations()
        for file in self._format.files:
            allocations = self._restore_file(file, allocations)
        for file in self._format.files:
            self._directory.remove_temporary_files(file.name)
        if not self._directory.is_writable():
            logger.warning("checkpoints cannot be written: folder=%s", self._directory.path(""))
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
        # What cannot be stored must be known before anything is.
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
                logger.warning("removal not stored, the next change will: error=%s", error)
        self._current = new

    def _encode(self, file: CheckpointFile, allocations: Allocations) -> bytes:
        try:
            return file.encode_content(allocations)
        except UnsupportedFieldError as error:
            raise UnsupportedStateError(self._directory.path(file.name), str(error)) from error

    def _write(self, file: CheckpointFile, content: bytes) -> None:
        # Upstream compares checksums, of which two contents can have the same.
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
