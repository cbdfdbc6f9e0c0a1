"""Which process is which: a pid alone may be somebody else's by now."""

import errno
import os
import signal
from functools import cache
from pathlib import Path

from podstatus.runtime.process.records.models import ProcessIdentity

_STATE, _START_TICKS = 0, 19
"""Among the fields of /proc/<pid>/stat behind the name, which may hold anything."""
_NO_PROCESS = (errno.ESRCH, errno.ENOENT, errno.EINVAL)
"""Nobody has the pid; or by now a thread has it, as newer and as older kernels say that."""


def read_identity(pid: int) -> ProcessIdentity | None:
    """The process that has this pid now; None if there is none, or only its remains."""
    fields = _read_stat(pid)
    if fields is None or fields[_STATE] in ("Z", "X"):
        return None
    return ProcessIdentity(pid=pid, start_ticks=int(fields[_START_TICKS]), boot_id=boot_id())


def is_alive(process: ProcessIdentity) -> bool:
    """Whether it still runs."""
    return read_identity(process.pid) == process


def open_process(process: ProcessIdentity) -> int | None:
    """A file descriptor that stands for it, readable once it has ended; None if it is gone."""
    try:
        opened = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno not in _NO_PROCESS:
            raise
        return None
    is_it = False
    try:
        # Only now: what is open cannot become another one.
        is_it = is_alive(process)
    finally:
        if not is_it:
            os.close(opened)
    return opened if is_it else None


def send_signal(process: ProcessIdentity, number: int) -> bool:
    """Send it a signal; False if it is gone."""
    opened = open_process(process)
    if opened is None:
        return False
    try:
        signal.pidfd_send_signal(opened, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(opened)
    return True


@cache
def boot_id() -> str:
    """Which boot of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _read_stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
