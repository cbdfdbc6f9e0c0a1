"""A virtual clock that tests advance."""

import asyncio
import heapq
import itertools

from podstatus.kube.scalars.time import Time

_SECOND = 1_000_000_000
_UPTIME = 3600 * _SECOND
"""The monotonic time at which a fake clock starts, as of a machine that booted an hour ago."""
DEFAULT_ROUNDS = 50
"""The default number of rounds of `run_ready_tasks`."""


class FakeClock:
    """Virtual time for the tasks of one event loop; `rounds` as in `run_ready_tasks`."""

    def __init__(
        self, start: str = "2100-01-01T00:00:00Z", *, rounds: int = DEFAULT_ROUNDS
    ) -> None:
        self._rounds = rounds
        self._now = Time.parse(start).unix_nanos()
        self._start = self._now - _UPTIME
        self._wall_offset = 0
        self._timers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = itertools.count()

    def now(self) -> int:
        """Return the wall clock, in nanoseconds since the Unix epoch."""
        return self._now + self._wall_offset

    def monotonic(self) -> int:
        """Return the monotonic clock in nanoseconds, which `step` does not change.

        It differs from the wall clock by decades, so code that mixes the two fails its tests.
        """
        return self._now - self._start

    def step(self, seconds: float) -> None:
        """Make the wall clock jump, forward or back; no time passes."""
        self._wall_offset += round(seconds * _SECOND)

    async def wait(self, seconds: float) -> None:
        """Return after the clock has advanced by `seconds`; at once if not positive."""
        if seconds <= 0:
            return
        done = asyncio.get_running_loop().create_future()
        due = self._now + round(seconds * _SECOND)
        heapq.heappush(self._timers, (due, next(self._sequence), done))
        await done

    async def advance(self, seconds: float) -> None:
        """Advance the clock, and run tasks at each timer that expires on the way."""
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
    """Run every task for this many steps: enough to become idle, unless they are long.

    A step ends where a task really waits. Calls of an in-memory API do not, so a batch of any size
    is one step; a fake that awaits needs one round per await.
    """
    for _ in range(rounds):
        await asyncio.sleep(0)
