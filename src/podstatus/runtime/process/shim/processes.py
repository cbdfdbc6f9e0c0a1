"""The processes of this machine, as /proc tells them."""

import errno
import os
import signal
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PARENT, _START_TICKS = 1, 19
"""Among the fields of /proc/<pid>/stat behind the name, which may hold anything."""

_NO_PROCESS = (errno.ESRCH, errno.ENOENT, errno.EINVAL)
"""Nobody has the pid; or by now a thread has it, as newer and as older kernels say that."""

_MAX_YOUNGEST = 24
"""Processes; each takes a microsecond to look at."""


class Process(NamedTuple):
    """A process, told from a later one with its pid by when it was started."""

    pid: int
    parent: int
    start_ticks: int


def find_process(pid: int) -> Process | None:
    """The process with this pid, also one that nobody has waited for yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(b")")[2].split()
    return Process(pid, int(fields[_PARENT]), int(fields[_START_TICKS]))


def descendants(pid: int) -> list[Process]:
    """Everything that a process has started and that still is, parents first."""
    children: dict[int, list[Process]] = {}
    for name in _pids():
        process = find_process(int(name)) if name.isdecimal() else None
        if process is not None:
            children.setdefault(process.parent, []).append(process)
    found = list(children.get(pid, ()))
    for process in found:  # grows as it goes
        found.extend(children.get(process.pid, ()))
    return found


def children() -> list[int]:
    """Pids of our own children. They stay theirs until we wait for them."""
    return [pid for pid in map(int, filter(str.isdecimal, _pids())) if _is_child(pid)]


def youngest_children() -> list[int]:
    """Those among the last few processes that were started on this machine: a very short look."""
    last = int(Path("/proc/loadavg").read_bytes().split()[-1])
    return [pid for pid in range(max(last - _MAX_YOUNGEST, 2), last + 1) if _is_child(pid)]


def signal_process(process: Process, number: signal.Signals) -> None:
    """Send a signal to exactly this process, if it still is and may be sent any."""
    try:
        opened = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno not in _NO_PROCESS:
            raise
        return
    try:
        # What is open cannot become another one; its parent may have changed.
        now = find_process(process.pid)
        if now is not None and now.start_ticks == process.start_ticks:
            signal.pidfd_send_signal(opened, number)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(opened)


@cache
def boot_id() -> str:
    """Which boot of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pids() -> list[str]:
    return os.listdir("/proc")  # noqa: PTH208  a pass over all must be cheap


def _is_child(pid: int) -> bool:
    # Asked about one that is not, the kernel refuses: far cheaper than to read who its parent is.
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
