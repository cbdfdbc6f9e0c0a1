"""Kills all descendants of a process, including fork bombs."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from .processes import Process, children, descendants, signal_process, youngest_children

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
