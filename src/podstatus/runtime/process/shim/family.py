"""Ending all that a process has started, also what forks as fast as it can."""

import os
import signal
from collections.abc import Callable, Collection

from .processes import Process, descendants, send

_STOP_ROUNDS = 200
"""How often it is looked for newcomers; a bomb that still grows is shot at as it is."""

_LONGEST_WAIT = 0.2
"""Seconds. Each end wakes the waiting; this is for what /proc did not show in the round before."""


def end_family(reap: Callable[[], bool], wait: Callable[[float], None]) -> None:
    """Kill every descendant and wait for each; returns when there is none.

    `reap` collects who has ended and says whether there is any child left: an orphan becomes
    ours, so without a child there is no descendant. `wait` returns when one ends, or when so many
    seconds have passed.
    """
    pause, thorough = 0.01, False
    while reap():
        kill(os.getpid(), thorough=thorough)
        wait(pause)
        pause, thorough = min(pause * 2, _LONGEST_WAIT), True


def kill(of: int, *, but: Collection[int] = (), thorough: bool = False) -> bool:
    """Kill the descendants of a process, but not some of its children; whether there were any.

    Thorough: all are stopped first, until there are no more newcomers. Places that the killed
    leave would be taken by those who still fork.
    """
    found = _descendants(of, but)
    if thorough:
        found = _stop(of, but)
    for process in found:
        send(process, signal.SIGKILL)
    return bool(found)


def _stop(of: int, but: Collection[int]) -> list[Process]:
    stopped: dict[tuple[int, int], Process] = {}
    for _ in range(_STOP_ROUNDS):
        newcomers = [p for p in _descendants(of, but) if (p.pid, p.start_ticks) not in stopped]
        if not newcomers:
            break
        for process in newcomers:
            send(process, signal.SIGSTOP)
            stopped[process.pid, process.start_ticks] = process
    return list(stopped.values())


def _descendants(of: int, but: Collection[int]) -> list[Process]:
    found = descendants(of)
    if not but:
        return found
    spared = set(but)
    for process in found:  # parents come first
        if process.parent in spared:
            spared.add(process.pid)
    return [process for process in found if process.pid not in spared]
