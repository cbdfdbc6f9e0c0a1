"""Reads, writes and removes the records of pods on disk.

Containers may have created files in a pod's folder: no symbolic link is ever followed.
"""

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.paths.safe_paths import open_descriptor, remove_tree
from podstatus.runtime.process.records.layout import (
    ContainerFolder,
    PodFolder,
    pod_uid,
    pods_folder,
    removed_folder,
)
from podstatus.runtime.process.records.models import (
    ExitRecord,
    LaunchRecord,
    PodRecord,
    ResizeRecord,
    ShimRecord,
    StartRecord,
)
from podstatus.runtime.process.shim.records import POD

logger = logging.getLogger(__name__)

T = TypeVar("T")
_PRIVATE_MODE = 0o700
_DAMAGED_SUFFIX = ".damaged"


class RecordStore:
    """The folder of the runtime. Only one process at a time may use it."""

    def __init__(self, root: Path) -> None:
        """Raises RuntimeDownError if the folder cannot be used."""
        self._root = root
        with _translate_errors(root):
            for folder in (root, pods_folder(root), removed_folder(root)):
                folder.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)

    def pod_folder(self, uid: PodUID) -> PodFolder:
        """Return the paths of a pod's folder, whether it exists or not."""
        return PodFolder(self._root, uid)

    def read_pods(self) -> list[PodRecord]:
        """Return the records of all pods. Raises RuntimeDownError."""
        with _translate_errors(self._root):
            folders = sorted(pods_folder(self._root).iterdir())
        records = ((path, self._read_pod(path)) for path in folders)
        return [
            record
            for path, record in records
            if record is not None and self.pod_folder(record.uid).path == path
        ]

    def _read_pod(self, folder: Path) -> PodRecord | None:
        """Read the record of a pod; reconstruct a damaged one as far as possible.

        Without a record, the exits of its containers would not be listed.
        """
        path = folder / POD
        record = _read(path, PodRecord)
        if (
            record is not None
            or not path.with_name(f"{POD}{_DAMAGED_SUFFIX}").exists()
            or path.exists()
        ):
            return record
        uid = pod_uid(folder)
        shim = self.read_last_shim(uid)
        return PodRecord(
            uid=uid,
            namespace="",
            name="",
            sandbox_id="" if shim is None else shim.sandbox_id,
            sandbox_attempt=0,
            created_at=0,
        )

    def read_launches(self, uid: PodUID) -> list[LaunchRecord]:
        """Return the launch records of all attempts of a pod. Raises RuntimeDownError."""
        folder, folders = self.pod_folder(uid), list[Path]()
        with _translate_errors(folder.path), suppress(FileNotFoundError):
            folders = sorted(folder.containers.iterdir())
        launches = ((path, _read(ContainerFolder(path).launch, LaunchRecord)) for path in folders)
        return [
            launch for path, launch in launches if launch is not None and launch.id == path.name
        ]

    def read_last_shim(self, uid: PodUID) -> ShimRecord | None:
        """Return the record of the pod's last shim. Raises RuntimeDownError."""
        return _read(self.pod_folder(uid).shim, ShimRecord)

    def read_shim(self, record: PodRecord) -> ShimRecord | None:
        """Return the record of the current sandbox's shim, or None. Raises RuntimeDownError."""
        shim = self.read_last_shim(record.uid)
        return shim if shim is not None and shim.sandbox_id == record.sandbox_id else None

    def read_resize(self, directory: ContainerFolder) -> ResizeRecord | None:
        """Return the resize record of an attempt, or None. Raises RuntimeDownError."""
        return _read(directory.resized, ResizeRecord)

    def read_started(self, directory: ContainerFolder) -> StartRecord | None:
        """Return the start record of an attempt, or None. Raises RuntimeDownError."""
        return _read(directory.started, StartRecord)

    def was_started(self, directory: ContainerFolder) -> bool:
        """Return whether a monitor took the attempt up: its command may have been executed."""
        # In this order: the first is renamed to the second.
        return directory.starting.exists() or directory.started.exists()

    def read_exit(self, directory: ContainerFolder) -> ExitRecord | None:
        """Return the exit record of an attempt, or None. Raises RuntimeDownError."""
        return _read(directory.exit, ExitRecord)

    def create_pod_dir(self, uid: PodUID) -> None:
        """Create the folders of a pod if necessary. Raises RuntimeDownError."""
        folder = self.pod_folder(uid)
        with _translate_errors(folder.path):
            for path in (folder.path, folder.volumes, folder.containers):
                path.mkdir(mode=_PRIVATE_MODE, exist_ok=True)

    def write_pod(self, record: PodRecord) -> None:
        """Write the record of a pod. Raises RuntimeDownError."""
        folder = self.pod_folder(record.uid)
        self.create_pod_dir(record.uid)
        with _translate_errors(folder.path):
            _write(folder.record, record)

    def create_container_dir(self, uid: PodUID, id: str) -> ContainerFolder:
        """Create and return the folder of an attempt. Raises RuntimeDownError."""
        folder = self.pod_folder(uid).container(id)
        with _translate_errors(folder.path):
            folder.path.mkdir(mode=_PRIVATE_MODE)
        return folder

    def write_launch(self, directory: ContainerFolder, launch: LaunchRecord) -> None:
        """Write the launch record, which the shim then starts. Raises RuntimeDownError."""
        with _translate_errors(directory.path):
            _write(directory.launch, launch)

    def write_resize(self, directory: ContainerFolder, resized: ResizeRecord) -> None:
        """Write a resize record; does nothing if the attempt is gone. Raises RuntimeDownError."""
        with _translate_errors(directory.path), suppress(FileNotFoundError):
            _write(directory.resized, resized)

    def write_exit(self, directory: ContainerFolder, record: ExitRecord) -> ExitRecord:
        """Write an exit record unless one exists; return the one on disk."""
        temporary = directory.exit.with_name(f"{directory.exit.name}.guess")
        try:
            _write(temporary, record)
            # A link, not a rename: the monitor's own record must not be replaced by this estimate.
            os.link(temporary, directory.exit)
        except FileExistsError:
            return self.read_exit(directory) or record
        except OSError as error:
            logger.warning("cannot write exit record: file=%s error=%s", temporary, error)
        finally:
            temporary.unlink(missing_ok=True)
        return record

    def fsync(self, path: Path) -> None:
        """Flush a file and its folder to disk; does nothing if the file is gone."""
        for target in (path, path.parent):
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            with suppress(FileNotFoundError), open_descriptor(target, flags) as descriptor:
                os.fsync(descriptor)

    def remove(self, path: Path) -> None:
        """Move a folder out of sight, then delete it. Raises RuntimeDownError."""
        moved = self._quarantine(path)
        if moved is not None:
            _remove_tree(moved)

    def quarantine_leftovers(self) -> None:
        """Move folders without a pod record out of sight. Raises RuntimeDownError."""
        for path in pods_folder(self._root).iterdir():
            if not (path / POD).exists() and not (path / f"{POD}{_DAMAGED_SUFFIX}").exists():
                self._quarantine(path)

    def collect_garbage(self) -> None:
        """Finish interrupted removals; may take long."""
        for path in removed_folder(self._root).iterdir():
            _remove_tree(path)

    def _quarantine(self, path: Path) -> Path | None:
        moved = removed_folder(self._root) / uuid.uuid4().hex
        with _translate_errors(path), suppress(FileNotFoundError):
            path.rename(moved)
            return moved
        return None


def _read(path: Path, kind: type[T]) -> T | None:
    """Read a record; None if it does not exist. Raises RuntimeDownError if it is unreadable."""
    try:
        return decode_json(path.read_bytes(), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RuntimeDownError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        _quarantine_damaged(path, error)
        return None


def _quarantine_damaged(path: Path, reason: Exception) -> None:
    """Rename a damaged record; from then on it counts as never written."""
    renamed = path.with_name(f"{path.name}{_DAMAGED_SUFFIX}")
    logger.error("renamed damaged pod record: file=%s error=%s", renamed, reason)
    try:
        path.replace(renamed)
    except OSError as error:
        logger.error("cannot rename damaged record: file=%s error=%s", path, error)


def _write(path: Path, value: msgspec.Struct) -> None:
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as writer:
        writer.write(msgspec.json.encode(value))
    temporary.replace(path)


def _remove_tree(path: Path) -> None:
    try:
        remove_tree(path)
    except OSError as error:
        logger.warning(
            "cannot remove directory, will retry at the next start: directory=%s error=%s",
            path,
            error,
        )


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RuntimeDownError(
            f"the process runtime cannot use {path}: {reason.lower()}; "
            "free some space, or make it writable"
        ) from error
