"""Identification of processes: a pid alone may have been reused."""

import os
import signal
from pathlib import Path

from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.shim.processes import NO_PROCESS_ERRNOS, boot_id

_STATE, _START_TICKS = 0, 19
"""Fields of /proc/<pid>/stat after the name; the name may contain any character."""


def read_identity(pid: int) -> ProcessIdentity | None:
    """Return the process with this pid; None if there is none, or only a zombie."""
    fields = _read_stat(pid)
    if fields is None or fields[_STATE] in ("Z", "X"):
        return None
    return ProcessIdentity(pid=pid, start_ticks=int(fields[_START_TICKS]), boot_id=boot_id())


def is_alive(process: ProcessIdentity) -> bool:
    """Return whether the process still runs."""
    return read_identity(process.pid) == process


def open_process(process: ProcessIdentity) -> int | None:
    """Return a pidfd, readable once the process has ended; None if it is gone."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno not in NO_PROCESS_ERRNOS:
            raise
        return None
    matches = False
    try:
        # Only now: a pidfd never refers to another process.
        matches = is_alive(process)
    finally:
        if not matches:
            os.close(pidfd)
    return pidfd if matches else None


def send_signal(process: ProcessIdentity, number: int) -> bool:
    """Send a signal; return False if the process is gone."""
    pidfd = open_process(process)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def _read_stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
