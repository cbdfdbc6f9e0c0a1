"""All processes below this one, and an end of them."""

import os
import signal
import time

_TIMEOUT_SECONDS = 10
"""How long a process may take to end that the kernel does not let go of."""


def kill_tree(group: int) -> None:
    """Kill all below, also what is started meanwhile; come back when none is left.

    All are stopped before the first is killed: so none starts another one unseen.
    """
    _kill_group(group)
    stopped: set[int] = set()
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not reap()[0] and time.monotonic() < until:
        found = _descendants()
        new = found - stopped
        for pid in new or found:
            _signal(pid, signal.SIGSTOP if new else signal.SIGKILL)
        stopped |= new
        if not new:
            time.sleep(0.001)


def reap() -> tuple[bool, dict[int, int]]:
    """Whether there are no children at all; and the wait status of those that have ended."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True, ended
        if pid == 0:
            return False, ended
        ended[pid] = status


def _descendants() -> set[int]:
    """The pids of all that descend from this process."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    to_do = [os.getpid()]
    while to_do:
        below = children.get(to_do.pop(), [])
        found.update(below)
        to_do += below
    return found


def _parents() -> list[tuple[int, int]]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - little is loaded here
    except OSError:
        return []
    return [(int(n), parent) for n in names if n.isdigit() and (parent := _parent(n)) is not None]


def _parent(name: str) -> int | None:
    try:
        opened = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # The name in brackets may hold anything.
        return int(os.read(opened, 4096).rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None
    finally:
        os.close(opened)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        # It has ended, or became another user's.
        return


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        # It has ended.
        return
