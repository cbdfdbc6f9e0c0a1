"""State that survives a restart, in the files of a kubelet.

Upstream: stateCheckpoint, allocation/state/state_checkpoint.go v1.36.4. There a change is
made in memory first, and stays there if it cannot be stored; here it is stored first.
"""

import logging
import os
from pathlib import Path

from msgspec import structs

from podstatus.checkpoint.errors import (
    CheckpointWriteError,
    DamagedCheckpointError,
    UnsupportedStateError,
)
from podstatus.checkpoint.folder import Folder
from podstatus.checkpoint.formats import KUBELET_V1_36, CheckpointFile, Format
from podstatus.checkpoint.kubelet_v1_28 import CannotCarryError
from podstatus.checkpoint.memory import MemoryState
from podstatus.checkpoint.scan import MalformedError
from podstatus.kube.encoding.frozen_copy import detached
from podstatus.kube.objects.allocation import Allocations, PodResources

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

    def __init__(self, folder: str | os.PathLike[str], *, format: Format = KUBELET_V1_36) -> None:
        super().__init__()
        if not os.fspath(folder):
            raise ValueError("the name of the folder is empty; name one, or `.` for this one")
        if not isinstance(format, Format):
            raise TypeError(
                f"expected a Format, got {type(format).__name__}; KUBELET_V1_36 and KUBELET_V1_28 "
                "are those there are"
            )
        self._folder = Folder(Path(folder).absolute())
        self._format = format
        self._contents: dict[str, bytes] = {}
        """What each file holds, as far as we know."""
        self._doubtful: set[str] = set()
        """The files that a failed write left old or new; the next change writes them."""

    def _load(self) -> Allocations:
        allocations = Allocations()
        for file in self._format.files:
            allocations = self._restore_file(file, allocations)
        for file in self._format.files:
            self._folder.remove_leftovers(file.name)
        if not self._folder.can_be_written():
            logger.warning("checkpoints cannot be written: folder=%s", self._folder.path(""))
        return structs.replace(
            allocations,
            allocated=_frozen(allocations.allocated),
            actuated=_frozen(allocations.actuated),
        )

    def _restore_file(self, file: CheckpointFile, onto: Allocations) -> Allocations:
        text = self._folder.read(file.name)
        if text is None:
            self._contents.pop(file.name, None)
            if self._format.writes_at_once:
                self._write(file, file.content(onto))
            return onto
        try:
            content = file.unseal(text)
            restored = file.restored(content, onto)
        except MalformedError as error:
            raise DamagedCheckpointError(self._folder.path(file.name), str(error)) from error
        self._contents[file.name] = content
        logger.info("checkpoint restored: file=%s", self._folder.path(file.name))
        return restored

    def _store(self, old: Allocations, new: Allocations) -> None:
        # What cannot be stored must be known before anything is.
        changed = [
            (file, self._content(file, new))
            for file in self._format.files
            if self._format.writes_at_once
            or file.name in self._doubtful
            or _differ(old, new, file.parts)
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
        if self._format.writes_at_once:
            try:
                self._store(old, new)
            except CheckpointWriteError as error:
                logger.warning("removal not stored, the next change will: error=%s", error)
        self._current = new

    def _content(self, file: CheckpointFile, allocations: Allocations) -> bytes:
        try:
            return file.content(allocations)
        except CannotCarryError as error:
            raise UnsupportedStateError(self._folder.path(file.name), str(error)) from error

    def _write(self, file: CheckpointFile, content: bytes) -> None:
        # Upstream compares checksums, of which two contents can have the same.
        if self._contents.get(file.name) == content:
            return
        self._contents.pop(file.name, None)
        self._doubtful.add(file.name)
        self._folder.write(file.name, file.seal(content))
        self._doubtful.remove(file.name)
        self._contents[file.name] = content


def _differ(old: Allocations, new: Allocations, parts: tuple[str, ...]) -> bool:
    return any(getattr(old, part) is not getattr(new, part) for part in parts)


def _frozen(pods: PodResources) -> PodResources:
    return {uid: detached(info) for uid, info in pods.items()}
