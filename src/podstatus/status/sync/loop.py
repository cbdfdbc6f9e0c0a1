"""The sync loop: syncs a status as soon as it changes, and all pods once per period.

Upstream: Start, status_manager.go v1.36.4.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from podstatus.base.clock import Clock
from podstatus.base.wake_up import WakeUp
from podstatus.status.sync.syncer import Syncer

logger = logging.getLogger(__name__)


class Wake(Enum):
    """The reason for a wake-up of the loop."""

    CHANGED = "a status changed"
    PERIOD = "a full sync is due"
    STOP = "stop was requested"


class _Run:
    """One run of the loop, from `run` or `start` to its end."""

    def __init__(self) -> None:
        self.stop = WakeUp[float]()
        self.stopping = False
        self.out_of_time = False
        self.thread: threading.Thread | None = None
        self.coroutine: Coroutine[Any, Any, None] | None = None

    def is_over(self) -> bool:
        """Whether the thread has ended, or the coroutine is closed or will never start."""
        if self.thread is not None:
            return not self.thread.is_alive()
        if self.coroutine is None:
            return False
        state = inspect.getcoroutinestate(self.coroutine)
        return state == inspect.CORO_CLOSED or (self.stopping and state == inspect.CORO_CREATED)


class SyncLoop:
    """Runs the syncer, in the caller's event loop or in its own thread."""

    def __init__(
        self,
        syncer: Syncer | None,
        wake_up: WakeUp[Wake],
        clock: Clock,
        period: float,
        heartbeat: Callable[[], None],
    ) -> None:
        self._syncer = syncer
        self._clock = clock
        self._period = period
        self._heartbeat = heartbeat
        self._wake_up = wake_up
        self._lifecycle = threading.Lock()
        self._current: _Run | None = None

    def wake_up(self) -> None:
        """Wake the loop to sync changed statuses. Thread-safe."""
        self._wake_up.set(Wake.CHANGED)

    def reconcile(self) -> None:
        """Wake the loop for a full sync. Thread-safe."""
        self._wake_up.set(Wake.PERIOD)

    def run(self) -> Coroutine[Any, Any, None]:
        """Return a coroutine that syncs until `stop()`. Counts as running from this call on."""
        with self._lifecycle:
            run = self._claim()
            run.coroutine = coroutine = self._serve(run)
            return coroutine

    def start(self) -> None:
        """Run the loop in a new thread."""
        with self._lifecycle:
            run = self._claim()
            run.thread = threading.Thread(
                target=self._serve_in_thread, args=(run,), name="podstatus-sync", daemon=True
            )
            try:
                run.thread.start()
            except RuntimeError:
                self._current = None
                raise

    def stop(self, *, drain: float) -> None:
        """Stop the loop after at most `drain` seconds for unsent statuses; wait for its thread."""
        if not drain >= 0:
            raise ValueError(f"drain is {drain!r}; must be at least 0 seconds")
        with self._lifecycle:
            run = self._current
            if run is None:
                return
            run.stopping = True
            run.stop.set(drain)
        if run.thread is not None and run.thread is not threading.current_thread():
            run.thread.join()

    async def sync_once(self, *, full: bool) -> int:
        """Run one sync without the loop, and return the number of pods to sync."""
        with self._lifecycle:
            run = self._claim()
        try:
            self._wake_up.drain()
            return 0 if self._syncer is None else await _sync_and_wait(self._syncer, full=full)
        finally:
            self._release(run)

    def pop_changes(self) -> bool:
        """Whether a change was pending; resets it."""
        with self._lifecycle:
            if self._current is not None and not self._current.is_over():
                raise RuntimeError("the sync loop is running and syncs changes; stop() it first")
            return self._wake_up.discard(Wake.CHANGED)

    def _claim(self) -> _Run:
        if self._current is not None and not self._current.is_over():
            raise RuntimeError("the status manager is already syncing; stop() it first")
        self._current = run = _Run()
        return run

    def _release(self, run: _Run) -> None:
        with self._lifecycle:
            if self._current is run:
                self._current = None

    def _serve_in_thread(self, run: _Run) -> None:
        try:
            asyncio.run(self._serve(run))
        except BaseException:
            logger.exception("sync loop failed; call start() to run it again")

    async def _serve(self, run: _Run) -> None:
        if self._current is not run:
            return  # stopped before it started, and another run has started since
        # Statuses that an earlier run did not get acknowledged count as changed.
        self._wake_up.set(Wake.CHANGED)
        try:
            async with asyncio.TaskGroup() as tasks:
                tick = tasks.create_task(self._tick())
                sync = tasks.create_task(self._sync(run))
                drain = min(await run.stop.wait())
                tick.cancel()
                self._wake_up.set(Wake.STOP)
                await self._drain(run, sync, drain)
                # A client may treat the cancellation as an ordinary failure and continue.
                run.out_of_time = True
                sync.cancel()
        finally:
            self._release(run)

    async def _drain(self, run: _Run, sync: asyncio.Task[None], seconds: float) -> None:
        """Wait up to `seconds` for the sync to end, or less if `stop` is called again."""
        async with asyncio.TaskGroup() as tasks:
            again = tasks.create_task(run.stop.wait())
            deadlines = {tasks.create_task(self._clock.wait(seconds))}
            while True:
                ends = {sync, again, *deadlines}
                done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if done != {again}:
                    break
                deadlines.add(tasks.create_task(self._clock.wait(min(again.result()))))
                again = tasks.create_task(run.stop.wait())
            for task in (again, *deadlines):
                task.cancel()

    async def _sync(self, run: _Run) -> None:
        if self._syncer is None:
            logger.info("no client, statuses are cached but not sent")
            return
        async with self._syncer as syncer:
            reasons: frozenset[Wake] = frozenset()
            # Ignore a STOP that an earlier run left behind.
            while not run.out_of_time and not (run.stopping and Wake.STOP in reasons):
                self._heartbeat()
                reasons = await self._wake_up.wait()
                if Wake.CHANGED in reasons:
                    await self._sync_batch(syncer, full=False)
                if Wake.PERIOD in reasons:
                    await self._sync_batch(syncer, full=True)
            if not run.out_of_time:
                # Last attempt for failed statuses and held-back phases.
                await self._sync_batch(syncer, full=True)
                await syncer.drain()
                # And for syncs that were in flight at the stop request and failed since.
                await syncer.drain()

    async def _sync_batch(self, syncer: Syncer, *, full: bool) -> None:
        try:
            await syncer.sync_batch(full=full)
        except Exception:
            # An external port failed. Ending the loop here would silently leave every status
            # stale, so the next batch tries again.
            logger.exception("sync failed, will retry")

    async def _tick(self) -> None:
        while True:
            await self._clock.wait(self._period)
            self._wake_up.set(Wake.PERIOD)


async def _sync_and_wait(syncer: Syncer, *, full: bool) -> int:
    async with syncer:
        count = await syncer.sync_batch(full=full)
        await syncer.wait_idle()
        return count
