"""The records that agent and shim leave for each other, on the shim's side: JSON that lasts.

The agent's side, with what each field means, is `podstatus.runtime.process.records.models`.
"""

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .processes import Process, boot_id, find_process
from .syscalls import rename_no_replace

POD, SHIM = "pod.json", "shim.json"
LAUNCH, STARTED, EXIT = "launch.json", "started.json", "exit.json"
LOG, STDIN, WINSIZE = "0.log", "stdin", "winsize"

Json = Mapping[str, object]

_RESERVED_BYTES = 512
"""Bytes. How a container ended takes some 150."""
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class LaunchSpec(NamedTuple):
    """How to start an attempt: what the shim needs of it."""

    sandbox_id: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    log_max_bytes: int
    log_max_files: int
    bubblewrap: list[str] | None = None
    host_paths: list[dict[str, Any]] = []  # never written  # noqa: RUF012
    user: int | None = None
    group: int | None = None
    groups: list[int] | None = None
    capabilities: list[int] | None = None
    seccomp: str = ""
    cgroups: list[str] = []  # never written  # noqa: RUF012
    oom_events: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


def read_launch(folder: Path) -> LaunchSpec:
    """How to start the attempt whose folder this is. Raises OSError, ValueError or TypeError."""
    told = json.loads((folder / LAUNCH).read_bytes())
    return LaunchSpec(**{field: told[field] for field in LaunchSpec._fields if field in told})


def read_sandbox(pod: Path) -> str | None:
    """Of which sandbox the pod's last shim was."""
    try:
        return str(json.loads((pod / SHIM).read_bytes())["sandbox_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_sandbox_active(pod: Path, sandbox_id: str) -> bool:
    """Whether a sandbox is still wanted. Raises OSError, ValueError, KeyError or TypeError."""
    try:
        told = json.loads((pod / POD).read_bytes())
    except FileNotFoundError:
        return True
    return bool(told["sandbox_id"] == sandbox_id and not told.get("stopped", False))


def shim_record(sandbox_id: str) -> Json:
    """That this process is the shim."""
    return {"process": _identity(_own_process()), "sandbox_id": sandbox_id}


def start_record(command: Process, started_at: int) -> Json:
    """That a command was executed, kept by this process."""
    keeper = _identity(_own_process())
    return {"process": _identity(command), "keeper": keeper, "started_at": started_at}


def exit_record(
    exit_code: int, reason: str, *, message: str = "", started_at: int = 0, finished_at: int
) -> Json:
    """How it ended; or why it did not begin."""
    return {
        "exit_code": exit_code,
        "reason": reason,
        "message": message,
        "started_at": started_at,
        "finished_at": finished_at,
    }


def reserve_space(path: Path) -> None:
    """Have room for a record that is written later, when the disk may be full. Raises OSError."""
    beside = _temporary_path(path)
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, _CREATE_FLAGS, 0o600), "wb") as file:
        file.write(b" " * _RESERVED_BYTES)


def mark_starting(path: Path) -> None:
    """Leave a trace that a record is about to be written; it needs no room. Raises OSError.

    Should its writer be killed, whoever looks knows that it had begun.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    os.close(os.open(_temporary_path(path), flags, 0o600))


def write_record(path: Path, record: Json, *, once: bool = False) -> None:
    """Put a record in its place, whole, so that it is there after a power cut. Raises OSError.

    `once`: what is in its place already stays, somebody may have acted on it.
    """
    beside = _temporary_path(path)
    # What was reserved is used up to its end: JSON may be followed by blanks.
    text = json.dumps(record).encode().ljust(_RESERVED_BYTES)
    with os.fdopen(_open_temporary(beside), "wb") as file:
        file.write(text)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    if once:
        _link_once(beside, path)
    else:
        beside.replace(path)
    _fsync_folder(path.parent)


def _link_once(beside: Path, path: Path) -> None:
    try:
        rename_no_replace(beside, path)
    except FileExistsError:
        beside.unlink(missing_ok=True)


def _temporary_path(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _open_temporary(beside: Path) -> int:
    """The file that was reserved, or a new one. Nobody else's: no link, no second name."""
    with suppress(OSError):
        file = os.open(beside, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            return file
        os.close(file)
    beside.unlink(missing_ok=True)
    return os.open(beside, _CREATE_FLAGS, 0o600)


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
