"""Kills all descendants of this process."""

import os
import signal
import time

_TIMEOUT_SECONDS = 10
"""How long to wait for a process that the kernel cannot end."""


def kill_tree(group: int) -> None:
    """Kill all descendants, including new ones; return when none is left.

    All are stopped before the first is killed, so that none forks unnoticed.
    """
    _kill_group(group)
    stopped: set[int] = set()
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not reap()[0] and time.monotonic() < deadline:
        descendants = _descendants()
        new = descendants - stopped
        for pid in new or descendants:
            _signal(pid, signal.SIGSTOP if new else signal.SIGKILL)
        stopped |= new
        if not new:
            time.sleep(0.001)


def reap() -> tuple[bool, dict[int, int]]:
    """Return whether there are no children, and the wait status of each ended child."""
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
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    descendants: set[int] = set()
    queue = [os.getpid()]
    while queue:
        pids = children.get(queue.pop(), [])
        descendants.update(pids)
        queue += pids
    return descendants


def _parents() -> list[tuple[int, int]]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - loads as few modules as possible
    except OSError:
        return []
    return [(int(n), parent) for n in names if n.isdigit() and (parent := _parent(n)) is not None]


def _parent(name: str) -> int | None:
    try:
        descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # The name in parentheses may contain any character.
        return int(os.read(descriptor, 4096).rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None
    finally:
        os.close(descriptor)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        # It has ended, or belongs to another user now.
        return


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        # The group has ended.
        return
