"""The state directory: private to its owner, locked by one process.

StateDirError           the directory cannot be used
└── StateDirLockedError another process uses it
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.base.atomic_file import replace_file
from podstatus.base.msgspec_json import decode_json
from podstatus.base.system_time import wall_clock_ns
from podstatus.kube.scalars.time import Time

LOCK_FILE = "lock"
_READER_SECONDS = 1.0
"""How long to wait for processes that hold a shared lock, each for an instant, in `lock_holder`."""
_RETRY_SECONDS = 0.005


class StateDirError(Exception):
    """The directory cannot be used; the message names it, the reason and the remedy."""


class StateDirLockedError(StateDirError):
    """Another process holds the lock of the directory."""


class LockHolder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The process that holds the lock, as written in the lock file."""

    pid: int
    since: str
    command: str = ""
    """What it is, if it is none of the processes that the directory is for: `podstatus down`."""


class StateDir:
    """Private files, replaced atomically. Locked until closed.

    The lock (flock) is released when the process ends, however it ends.
    """

    def __init__(self, path: Path, *, used_by: str = "API server", command: str = "") -> None:
        """Create the directory if missing, and lock it. Raises StateDirError.

        `used_by` names the kind of process in the error message; `command`: see `LockHolder`.
        """
        self.path = path.absolute()
        self._used_by = used_by
        self._command = command
        try:
            # Applies only to a new directory: the permissions of an existing one are up to its
            # owner.
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = os.open(
                self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise StateDirError(_unusable_message(self.path, error)) from error
        self._acquire_lock()

    def close(self) -> None:
        """Release the lock of the directory."""
        os.close(self._lock_fd)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if it does not exist. Raises StateDirError."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateDirError(_unusable_message(self.path / name, error)) from error

    def write(self, name: str, content: bytes) -> Path:
        """Replace a file atomically, mode 0600; return its path. Raises StateDirError."""
        path = self.path / name
        try:
            replace_file(path, content)
        except OSError as error:
            raise StateDirError(_unusable_message(path, error)) from error
        return path

    def _acquire_lock(self) -> None:
        deadline = time.monotonic() + _READER_SECONDS
        while not _try_lock(self._lock_fd, fcntl.LOCK_EX):
            # A shared lock can be had beside those of `lock_holder`, not beside a StateDir.
            if _try_lock(self._lock_fd, fcntl.LOCK_SH) and time.monotonic() < deadline:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)
                time.sleep(_RETRY_SECONDS)
                continue
            holder = _read_holder(self._lock_fd)
            os.close(self._lock_fd)
            owner = f" (pid {holder.pid}, since {holder.since})" if holder else ""
            command = holder.command if holder else ""
            user = command or f"another {self._used_by}"
            remedy = "wait until it has ended" if command else "stop it"
            raise StateDirLockedError(
                f"{self.path} is in use by {user}{owner}; {remedy}, or choose another directory"
            )
        self._write_lock_owner()

    def _write_lock_owner(self) -> None:
        """Record the holder in the lock file. Best effort: the lock works without it."""
        since = Time.from_unix_nanos(wall_clock_ns()).truncated()
        holder = LockHolder(pid=os.getpid(), since=since.wire or "", command=self._command)
        with suppress(OSError):
            os.ftruncate(self._lock_fd, 0)
            os.pwrite(self._lock_fd, msgspec.json.encode(holder), 0)


def lock_holder(path: Path) -> LockHolder | None:
    """Return the holder of the directory's lock, None if it is unlocked.

    The pid is 0 if the lock file names no process. Raises StateDirError.
    """
    try:
        lock = os.open(path / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateDirError(_unusable_message(path, error)) from error
    try:
        if _try_lock(lock, fcntl.LOCK_SH):
            return None
        return _read_holder(lock) or LockHolder(pid=0, since="")
    finally:
        os.close(lock)


def _try_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(lock: int) -> LockHolder | None:
    try:
        return decode_json(os.pread(lock, 1000, 0), LockHolder)
    except (OSError, msgspec.DecodeError):
        return None


def _unusable_message(path: Path, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"cannot use {path}: {reason}; choose a directory that you may write to"
