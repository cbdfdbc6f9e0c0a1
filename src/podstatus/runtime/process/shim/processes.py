"""Processes of this machine, read from /proc; kills all descendants, including fork bombs."""

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PARENT, _START_TICKS = 1, 19
"""Fields of /proc/<pid>/stat after the name; the name may contain any character."""

NO_PROCESS_ERRNOS = (errno.ESRCH, errno.ENOENT, errno.EINVAL)
"""No process has the pid, or it is the ID of a thread (the errno depends on the kernel)."""

_MAX_YOUNGEST = 24
"""Checking one pid takes about a microsecond."""


class Process(NamedTuple):
    """A process; the start time distinguishes it from a later process with the same pid."""

    pid: int
    parent: int
    start_ticks: int


def find_process(pid: int) -> Process | None:
    """Return the process with this pid, zombies included, or None."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(b")")[2].split()
    return Process(pid, int(fields[_PARENT]), int(fields[_START_TICKS]))


def descendants(pid: int) -> list[Process]:
    """Return all descendants of a process, parents first."""
    children: dict[int, list[Process]] = {}
    for name in _pids():
        process = find_process(int(name)) if name.isdecimal() else None
        if process is not None:
            children.setdefault(process.parent, []).append(process)
    result = list(children.get(pid, ()))
    for process in result:  # the list grows during the iteration
        result.extend(children.get(process.pid, ()))
    return result


def children() -> list[int]:
    """Return the pids of this process's children; a pid is not reused before it is reaped."""
    return [pid for pid in map(int, filter(str.isdecimal, _pids())) if _is_child(pid)]


def youngest_children() -> list[int]:
    """Return the children among the newest few pids of this machine: a very short check."""
    last = int(Path("/proc/loadavg").read_bytes().split()[-1])
    return [pid for pid in range(max(last - _MAX_YOUNGEST, 2), last + 1) if _is_child(pid)]


def signal_process(process: Process, number: signal.Signals) -> None:
    """Signal exactly this process; does nothing if it is gone or may not be signalled."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno not in NO_PROCESS_ERRNOS:
            raise
        return
    try:
        # A pidfd never refers to another process; verify that it is the expected one.
        now = find_process(process.pid)
        if now is not None and now.start_ticks == process.start_ticks:
            signal.pidfd_send_signal(pidfd, number)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(pidfd)


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pids() -> list[str]:
    return os.listdir("/proc")  # noqa: PTH208  listing all processes must be cheap


def _is_child(pid: int) -> bool:
    # The kernel rejects a pid that is not our child: far cheaper than reading its parent.
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


_KILL_ROUNDS, _YOUNGEST_ROUNDS = 50, 50
"""Passes over all children, and over the youngest in between, before everything is stopped."""

_STOP_ROUNDS = 200
"""Passes that stop new processes; a bomb that still grows is then killed as it is."""

_MAX_WAIT_SECONDS = 0.2
"""Every exit wakes the waiter; this covers processes that /proc did not show in the last pass."""


def kill_tree(reap: Callable[[], bool], wait: Callable[[float], None]) -> None:
    """Kill all descendants and wait for them; return when none is left.

    `reap` reaps ended children and returns whether any child is left. Orphans become children of
    this process (a subreaper), so without children there are no descendants. `wait` returns when a
    child ends, or after the given seconds.
    """
    pause = 0.001
    while reap():
        if not _kill_until_none(reap):
            _stop_all()
            for process in descendants(os.getpid()):
                signal_process(process, signal.SIGKILL)
        wait(pause)
        pause = min(pause * 2, _MAX_WAIT_SECONDS)


def kill_children(pids: Iterable[int]) -> None:
    """Kill these children. Grandchildren become children, so callers have to check again."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _kill_until_none(reap: Callable[[], bool]) -> bool:
    """Kill children until there are no new ones; False if new ones keep appearing.

    A process that forks and exits repeatedly has a new pid in every pass. But its child is adopted
    by this process when it exits, so one of many short passes kills it before it forks again.
    """
    killed: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        current = set(children())
        if current <= killed:
            return True
        kill_children(current)
        killed |= current
        for _ in range(_YOUNGEST_ROUNDS):
            kill_children(youngest_children())
        reap()
    return False


def _stop_all() -> None:
    """Stop everything first: otherwise running processes fork into the freed process slots."""
    stopped: set[Process] = set()
    for _ in range(_STOP_ROUNDS):
        newcomers = set(descendants(os.getpid())) - stopped
        if not newcomers:
            return
        for process in newcomers:
            signal_process(process, signal.SIGSTOP)
        stopped |= newcomers
