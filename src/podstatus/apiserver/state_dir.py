"""The folder that a server keeps its secrets and objects in: its owner's alone, one server's.

FolderError         the folder cannot be used
└── FolderBusyError another process uses it
"""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.base.aio import wall_clock_ns
from podstatus.base.msgspec_json import decode_json
from podstatus.kube.scalars.time import Time

_LOCK_FILE = "lock"


class StateDirError(Exception):
    """The folder cannot be used; the message says which, why, and what to do."""


class StateDirLockedError(StateDirError):
    """Another process uses the folder."""


class LockHolder(msgspec.Struct, frozen=True):
    """Who has locked a folder, as it says in the lock file."""

    pid: int
    since: str


class StateDir:
    """Files that nobody else may read, replaced as a whole. Locked until closed.

    The lock goes with the process, however it ends.
    """

    def __init__(self, path: Path, *, used_by: str = "API server") -> None:
        """Make the folder if there is none, and lock it. Raises FolderError.

        `used_by` says what kind of process uses such a folder.
        """
        self.path = path.absolute()
        self._used_by = used_by
        try:
            # Only what we make: the permissions of a folder that was there are its owner's wish.
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = os.open(
                self.path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise StateDirError(_unusable_message(self.path, error)) from error
        self._acquire_lock()

    def close(self) -> None:
        """Let others use the folder."""
        os.close(self._lock_fd)

    def read(self, name: str) -> bytes | None:
        """What is in a file, None if there is none. Raises FolderError."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateDirError(_unusable_message(self.path / name, error)) from error

    def write(self, name: str, content: bytes) -> Path:
        """Make this the content of a file that only its owner may read. Raises FolderError."""
        path = self.path / name
        try:
            write_private(path, content)
        except OSError as error:
            raise StateDirError(_unusable_message(path, error)) from error
        return path

    def _acquire_lock(self) -> None:
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _read_holder(self._lock_fd)
            os.close(self._lock_fd)
            who = f" (pid {holder.pid}, since {holder.since})" if holder else ""
            raise StateDirLockedError(
                f"{self.path} is in use by another {self._used_by}{who}; stop that one, or choose "
                "another folder"
            ) from error
        self._write_lock_owner()

    def _write_lock_owner(self) -> None:
        """Say who has the lock. It is not needed for the lock, so a full disk does no harm."""
        since = Time.from_unix_nanos(wall_clock_ns()).truncated()
        holder = LockHolder(pid=os.getpid(), since=since.wire or "")
        with suppress(OSError):
            os.ftruncate(self._lock_fd, 0)
            os.pwrite(self._lock_fd, msgspec.json.encode(holder), 0)


def write_private(path: Path, content: bytes) -> None:
    """Make this the content of a file that only its owner may read. Raises OSError."""
    file, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(file, "wb") as writer:
            writer.write(content)
            writer.flush()
            os.fsync(file)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def lock_holder(path: Path) -> LockHolder | None:
    """Who uses a folder, as far as it says; None if nobody does. Raises FolderError."""
    try:
        lock = os.open(path / _LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateDirError(_unusable_message(path, error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(lock) or LockHolder(pid=0, since="")
    finally:
        os.close(lock)
    return None


def _read_holder(lock: int) -> LockHolder | None:
    try:
        return decode_json(os.pread(lock, 1000, 0), LockHolder)
    except (OSError, msgspec.DecodeError):
        return None


def _unusable_message(path: Path, error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    return f"cannot use {path}: {why}; choose a folder that you may write to"
