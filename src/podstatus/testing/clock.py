"""A clock that moves when it is told to."""

import asyncio
import heapq
import itertools

from podstatus.kube.scalars.time import Time

_SECOND = 1_000_000_000
DEFAULT_ROUNDS = 50
"""How many steps `run_ready_tasks` lets every task take, unless told otherwise."""


class FakeClock:
    """Virtual time for the tasks of one event loop; `rounds` as in `run_ready_tasks`."""

    def __init__(
        self, start: str = "2100-01-01T00:00:00Z", *, rounds: int = DEFAULT_ROUNDS
    ) -> None:
        self._rounds = rounds
        self._now = Time.parse(start).unix_nanos()
        self._wall_offset = 0
        self._timers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = itertools.count()

    def now(self) -> int:
        """The virtual time in nanoseconds since the Unix epoch."""
        return self._now + self._wall_offset

    def monotonic(self) -> int:
        """The virtual time without what was added by `set_ahead`."""
        return self._now

    def step(self, seconds: float) -> None:
        """Set the wall clock ahead, or back: no time passes by that."""
        self._wall_offset += round(seconds * _SECOND)

    async def wait(self, seconds: float) -> None:
        """Come back when the clock was moved so far; at once if that is now."""
        if seconds <= 0:
            return
        done = asyncio.get_running_loop().create_future()
        due = self._now + round(seconds * _SECOND)
        heapq.heappush(self._timers, (due, next(self._sequence), done))
        await done

    async def advance(self, seconds: float) -> None:
        """Move on, stopping at each moment that somebody waits for until all is at rest."""
        await run_ready_tasks(self._rounds)
        end = self._now + round(seconds * _SECOND)
        while self._timers and self._timers[0][0] <= end:
            due, _, done = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if not done.done():
                done.set_result(None)
                await run_ready_tasks(self._rounds)
        self._now = end
        await run_ready_tasks(self._rounds)


async def run_ready_tasks(rounds: int = DEFAULT_ROUNDS) -> None:
    """Let every task take so many steps: enough to come to rest, unless they are long.

    A step ends where a task really waits. Calls of an API in memory do not, so a batch of
    any size is one step; a fake that waits by itself needs a round for each time it does.
    """
    for _ in range(rounds):
        await asyncio.sleep(0)
