"""Records that agent and shim exchange as durable JSON files; the shim's side.

The agent's side, which documents each field, is `podstatus.runtime.process.records.models`.
"""

import ctypes
import errno
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .processes import Process, boot_id, find_process
from .syscalls import libc

POD, SHIM = "pod.json", "shim.json"
LAUNCH, STARTED, EXIT = "launch.json", "started.json", "exit.json"
LOG, STDIN, WINSIZE = "0.log", "stdin", "winsize"

Json = Mapping[str, object]

_RESERVED_BYTES = 512
"""An exit record takes about 150 bytes."""
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_UNSUPPORTED_ERRNOS = (errno.EINVAL, errno.ENOSYS)
"""Unsupported by this file system, or by this kernel."""


class LaunchSpec(NamedTuple):
    """How to start an attempt: the fields of a launch record that the shim needs."""

    sandbox_id: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    log_max_bytes: int
    log_max_files: int
    bubblewrap: list[str] | None = None
    host_paths: list[dict[str, Any]] = []  # never written  # noqa: RUF012
    setsid: str = ""
    user: int | None = None
    group: int | None = None
    groups: list[int] | None = None
    capabilities: list[int] | None = None
    seccomp: str = ""
    sysctls: dict[str, str] = {}  # never written  # noqa: RUF012
    cgroups: list[str] = []  # never written  # noqa: RUF012
    oom_events: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


def read_launch(folder: Path) -> LaunchSpec:
    """Read the launch record of an attempt. Raises OSError, ValueError or TypeError."""
    record = json.loads((folder / LAUNCH).read_bytes())
    return LaunchSpec(**{field: record[field] for field in LaunchSpec._fields if field in record})


def read_sandbox(pod: Path) -> str | None:
    """Return the sandbox ID of the pod's last shim, or None."""
    try:
        return str(json.loads((pod / SHIM).read_bytes())["sandbox_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_sandbox_active(pod: Path, sandbox_id: str) -> bool:
    """Return whether the sandbox is in use. Raises OSError, ValueError, KeyError or TypeError."""
    try:
        record = json.loads((pod / POD).read_bytes())
    except FileNotFoundError:
        return True
    return bool(record["sandbox_id"] == sandbox_id and not record.get("stopped", False))


def shim_record(sandbox_id: str) -> Json:
    return {"process": _identity(_own_process()), "sandbox_id": sandbox_id}


def start_record(command: Process, started_at: int) -> Json:
    """Return the record of an executed command, with this process as its monitor."""
    monitor = _identity(_own_process())
    return {"process": _identity(command), "keeper": monitor, "started_at": started_at}


def exit_record(
    exit_code: int, reason: str, *, message: str = "", started_at: int = 0, finished_at: int
) -> Json:
    return {
        "exit_code": exit_code,
        "reason": reason,
        "message": message,
        "started_at": started_at,
        "finished_at": finished_at,
    }


def reserve_space(path: Path) -> None:
    """Reserve disk space for a record that may be written on a full disk. Raises OSError."""
    temporary = _temporary_path(path)
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, _CREATE_FLAGS, 0o600), "wb") as file:
        file.write(b" " * _RESERVED_BYTES)


def mark_starting(path: Path) -> None:
    """Mark that a record is about to be written; needs no disk space. Raises OSError.

    If the writer is killed, the mark shows that it had begun.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    os.close(os.open(_temporary_path(path), flags, 0o600))


def write_record(path: Path, record: Json, *, once: bool = False) -> None:
    """Write a record atomically and durably. Raises OSError.

    `once`: an existing record stays, since a reader may have acted on it.
    """
    temporary = _temporary_path(path)
    # Pad to the reserved size: blanks may follow JSON.
    text = json.dumps(record).encode().ljust(_RESERVED_BYTES)
    with os.fdopen(_open_temporary(temporary), "wb") as file:
        file.write(text)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    if once:
        _link_once(temporary, path)
    else:
        temporary.replace(path)
    _fsync_folder(path.parent)


def _link_once(temporary: Path, path: Path) -> None:
    try:
        _rename_no_replace(temporary, path)
    except FileExistsError:
        temporary.unlink(missing_ok=True)


def _rename_no_replace(source: Path, target: Path) -> None:
    """Rename, even on a full disk. Raises FileExistsError if `target` exists, or OSError."""
    names = _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target)
    number = errno.ENOSYS
    if (rename := getattr(libc, "renameat2", None)) is not None:
        if rename(*names, _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
    if number not in _UNSUPPORTED_ERRNOS:
        raise OSError(number, f"rename: {os.strerror(number)}", str(source), None, str(target))
    # Not atomic, but there is no better way here.
    if target.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.replace(target)


def _temporary_path(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _open_temporary(temporary: Path) -> int:
    """Open the reserved file, or a new one; never a symbolic link or a file with a second link."""
    with suppress(OSError):
        file = os.open(temporary, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            return file
        os.close(file)
    temporary.unlink(missing_ok=True)
    return os.open(temporary, _CREATE_FLAGS, 0o600)


def _fsync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _own_process() -> Process:
    own = find_process(os.getpid())
    if own is None:
        raise FileNotFoundError("/proc/self: /proc must be mounted")
    return own


def _identity(process: Process) -> Json:
    return {"pid": process.pid, "start_ticks": process.start_ticks, "boot_id": boot_id()}
