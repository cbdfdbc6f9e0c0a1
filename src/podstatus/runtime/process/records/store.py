"""The records of pods on the disk: read, written, removed.

What lies in a pod's folder may have been made by its containers: nothing is followed anywhere.
"""

import logging
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.paths.safe_paths import remove_tree
from podstatus.runtime.process.records.layout import (
    POD,
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

logger = logging.getLogger(__name__)

T = TypeVar("T")
_PRIVATE_MODE = 0o700
_DAMAGED_SUFFIX = ".damaged"


class RecordStore:
    """The folder of the runtime. One process at a time may use it."""

    def __init__(self, root: Path) -> None:
        """Raises RuntimeDownError if the folder cannot be used."""
        self._root = root
        try:
            for folder in (root, pods_folder(root), removed_folder(root)):
                folder.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable_error(root, error) from error

    def pod_folder(self, uid: PodUID) -> PodFolder:
        """Of this pod, whether it is there or not."""
        return PodFolder(self._root, uid)

    def read_pods(self) -> list[PodRecord]:
        """All pods that were started. Raises RuntimeDownError."""
        try:
            found = sorted(pods_folder(self._root).iterdir())
        except OSError as error:
            raise _unusable_error(self._root, error) from error
        records = ((path, self._read_pod(path)) for path in found)
        return [
            record
            for path, record in records
            if record is not None and self.pod_folder(record.uid).path == path
        ]

    def _read_pod(self, folder: Path) -> PodRecord | None:
        """What is known of a pod; of a damaged record as much as its folder tells.

        Without one, the exits of its containers would be out of sight.
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
        """All attempts that were made at a pod's containers. Raises RuntimeDownError."""
        try:
            found = sorted(self.pod_folder(uid).containers.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable_error(self.pod_folder(uid).path, error) from error
        launches = ((path, _read(ContainerFolder(path).launch, LaunchRecord)) for path in found)
        return [
            launch for path, launch in launches if launch is not None and launch.id == path.name
        ]

    def read_last_shim(self, uid: PodUID) -> ShimRecord | None:
        """What the last shim of a pod told about itself. Raises RuntimeDownError."""
        return _read(self.pod_folder(uid).shim, ShimRecord)

    def read_shim(self, record: PodRecord) -> ShimRecord | None:
        """What the shim of a pod tells about itself. Raises RuntimeDownError."""
        shim = self.read_last_shim(record.uid)
        return shim if shim is not None and shim.sandbox_id == record.sandbox_id else None

    def read_resize(self, directory: ContainerFolder) -> ResizeRecord | None:
        """What an attempt was given after it was started. Raises RuntimeDownError."""
        return _read(directory.resized, ResizeRecord)

    def read_started(self, directory: ContainerFolder) -> StartRecord | None:
        """Whether the command of an attempt was executed. Raises RuntimeDownError."""
        return _read(directory.started, StartRecord)

    def was_started(self, directory: ContainerFolder) -> bool:
        """Whether a keeper took an attempt up: its command may have been executed."""
        # In this order: one becomes the other.
        return directory.starting.exists() or directory.started.exists()

    def read_exit(self, directory: ContainerFolder) -> ExitRecord | None:
        """How an attempt ended. Raises RuntimeDownError."""
        return _read(directory.exit, ExitRecord)

    def create_pod_dir(self, uid: PodUID) -> None:
        """Have a folder for a pod. Raises RuntimeDownError."""
        folder = self.pod_folder(uid)
        try:
            for path in (folder.path, folder.volumes, folder.containers):
                path.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
        except OSError as error:
            raise _unusable_error(folder.path, error) from error

    def write_pod(self, record: PodRecord) -> None:
        """Make this what is known of a pod. Raises RuntimeDownError."""
        folder = self.pod_folder(record.uid)
        self.create_pod_dir(record.uid)
        try:
            _write(folder.record, record)
        except OSError as error:
            raise _unusable_error(folder.path, error) from error

    def create_container_dir(self, uid: PodUID, id: str) -> ContainerFolder:
        """A folder for an attempt. Raises RuntimeDownError."""
        place = self.pod_folder(uid).container(id)
        try:
            place.path.mkdir(mode=_PRIVATE_MODE)
        except OSError as error:
            raise _unusable_error(place.path, error) from error
        return place

    def write_launch(self, directory: ContainerFolder, launch: LaunchRecord) -> None:
        """Let the shim see how to start an attempt. Raises RuntimeDownError."""
        try:
            _write(directory.launch, launch)
        except OSError as error:
            raise _unusable_error(directory.path, error) from error

    def write_resize(self, directory: ContainerFolder, resized: ResizeRecord) -> None:
        """Remember what an attempt was given; nothing if it is gone. Raises RuntimeDownError."""
        try:
            _write(directory.resized, resized)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unusable_error(directory.path, error) from error

    def write_exit(self, directory: ContainerFolder, record: ExitRecord) -> ExitRecord:
        """Record how an attempt ended, unless somebody else has; what is recorded then."""
        new = directory.exit.with_name(f"{directory.exit.name}.guess")
        try:
            _write(new, record)
            # Not a rename: what a keeper knows is not replaced by what we think.
            os.link(new, directory.exit)
        except FileExistsError:
            return self.read_exit(directory) or record
        except OSError as error:
            logger.warning("end of a container cannot be recorded: %s error=%s", new, error)
        finally:
            new.unlink(missing_ok=True)
        return record

    def fsync(self, path: Path) -> None:
        """Have a file that was written on the disk when this returns, unless it is gone again."""
        for forced in (path, path.parent):
            with suppress(FileNotFoundError):
                _fsync(forced)

    def remove(self, path: Path) -> None:
        """Take a folder away: at once out of sight, then from the disk. Raises RuntimeDownError."""
        aside = self._quarantine(path)
        if aside is not None:
            _remove_tree(aside)

    def quarantine_leftovers(self) -> None:
        """Put folders out of sight that never became a pod. Raises RuntimeDownError."""
        for path in pods_folder(self._root).iterdir():
            if not (path / POD).exists() and not (path / f"{POD}{_DAMAGED_SUFFIX}").exists():
                self._quarantine(path)

    def collect_garbage(self) -> None:
        """Finish the removals that were begun; this may take long."""
        for path in removed_folder(self._root).iterdir():
            _remove_tree(path)

    def _quarantine(self, path: Path) -> Path | None:
        aside = removed_folder(self._root) / uuid.uuid4().hex
        try:
            path.rename(aside)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable_error(path, error) from error
        return aside


def _read(path: Path, kind: type[T]) -> T | None:
    """None if it is not there. That it cannot be read says nothing: Raises RuntimeDownError."""
    try:
        return decode_json(path.read_bytes(), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RuntimeDownError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        _quarantine_damaged(path, error)
        return None


def _quarantine_damaged(path: Path, reason: Exception) -> None:
    """Let it be no more in the way: it is as if it had never been written."""
    aside = path.with_name(f"{path.name}{_DAMAGED_SUFFIX}")
    logger.error("record of a pod is damaged, set aside: file=%s error=%s", aside, reason)
    try:
        path.replace(aside)
    except OSError as error:
        logger.error("damaged record cannot be set aside: file=%s error=%s", path, error)


def _write(path: Path, value: msgspec.Struct) -> None:
    """Replace a file as a whole."""
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as writer:
        writer.write(msgspec.json.encode(value))
    new.replace(path)


def _fsync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _remove_tree(path: Path) -> None:
    try:
        remove_tree(path)
    except OSError as error:
        logger.warning(
            "folder of a pod cannot be removed, the next start tries again: %s error=%s",
            path,
            error,
        )


def _unusable_error(path: Path, error: OSError) -> RuntimeDownError:
    why = error.strerror or str(error)
    return RuntimeDownError(
        f"the process runtime cannot use {path}: {why.lower()}; make room, or make it writable"
    )
