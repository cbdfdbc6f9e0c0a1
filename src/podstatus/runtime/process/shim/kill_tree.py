"""Ending all that a process has started, also what forks as fast as it can."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from .processes import Process, children, descendants, signal_process, youngest_children

_KILL_ROUNDS, _YOUNGEST_ROUNDS = 50, 50
"""How often all children are shot at, and the youngest in between, before all are stopped."""

_STOP_ROUNDS = 200
"""How often it is looked for more to stop; a bomb that still grows is shot at as it is."""

_MAX_WAIT_SECONDS = 0.2
"""Seconds. Each end wakes the waiting; this is for what /proc did not show in the round before."""


def kill_tree(reap: Callable[[], bool], wait: Callable[[float], None]) -> None:
    """Kill every descendant and wait for each; returns when there is none.

    `reap` collects who has ended and says whether there is any child left: an orphan becomes
    ours, so without a child there is no descendant. `wait` returns when one ends, or when so many
    seconds have passed.
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
    """Kill some of our children. What they started becomes ours: look again."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _kill_until_none(reap: Callable[[], bool]) -> bool:
    """Kill children until there are no new ones; False if there is no end of them.

    Who forks and ends, again and again, has another pid at every look. But what it forked is ours
    as soon as it ends, so one of many short looks hits it before it forks again.
    """
    killed: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        found = set(children())
        if found <= killed:
            return True
        kill_children(found)
        killed |= found
        for _ in range(_YOUNGEST_ROUNDS):
            kill_children(youngest_children())
        reap()
    return False


def _stop_all() -> None:
    """Stop everything first: the places that the killed leave are taken by those who fork."""
    stopped: set[Process] = set()
    for _ in range(_STOP_ROUNDS):
        newcomers = set(descendants(os.getpid())) - stopped
        if not newcomers:
            return
        for process in newcomers:
            signal_process(process, signal.SIGSTOP)
        stopped |= newcomers
