"""When to sync: as soon as a status changed, and everything once per period.

Upstream: Start, status_manager.go v1.36.4.
"""

import asyncio
import logging
import threading
from enum import Enum

from podstatus.base.clock import Clock
from podstatus.base.loop import WakeUp
from podstatus.status.sync import Syncer

logger = logging.getLogger(__name__)

_RUNNING = "the status manager is running already; stop() it first"


class Wake(Enum):
    """Why the loop looks up."""

    CHANGED = "a status changed"
    PERIOD = "it is time to reconcile everything"


class SyncLoop:
    """Runs the syncer, in the caller's event loop or in a thread of its own."""

    def __init__(self, syncer: Syncer | None, clock: Clock, period: float) -> None:
        self._syncer = syncer
        self._clock = clock
        self._period = period
        self._wake_up = WakeUp[Wake]()
        self._stop = WakeUp[None]()
        self._lifecycle = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running = False

    def wake_up(self) -> None:
        """Say that a status changed; from any thread."""
        self._wake_up.call(Wake.CHANGED)

    def take_changes(self) -> bool:
        """Whether a change waited to be looked at."""
        return Wake.CHANGED in self._wake_up.take()

    async def run(self) -> None:
        """Sync until `stop()`."""
        with self._lifecycle:
            if self._running:
                raise RuntimeError(_RUNNING)
            self._running = True
        try:
            async with asyncio.TaskGroup() as tasks:
                services = [tasks.create_task(self._sync()), tasks.create_task(self._tick())]
                await self._stop.wait()
                for service in services:
                    service.cancel()
        finally:
            self._running = False

    def start(self) -> None:
        """Run in a new thread."""
        with self._lifecycle:
            if self._thread is not None or self._running:
                raise RuntimeError(_RUNNING)
            self._stop.take()
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self.run()), name="podstatus-sync", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End `run()`; wait for the thread of `start()`."""
        with self._lifecycle:
            thread, self._thread = self._thread, None
            if thread is not None or self._running:
                self._stop.call(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    async def sync_once(self, *, full: bool) -> int:
        """One round, by hand."""
        if self._running:
            raise RuntimeError("the sync loop is running and syncs by itself")
        self._wake_up.take()
        return 0 if self._syncer is None else await self._syncer.sync_batch(full=full)

    async def _sync(self) -> None:
        if self._syncer is None:
            logger.info("no client: statuses are kept and not sent")
            return
        while True:
            reasons = await self._wake_up.wait()
            try:
                if Wake.CHANGED in reasons:
                    await self._syncer.sync_batch(full=False)
                if Wake.PERIOD in reasons:
                    await self._syncer.sync_batch(full=True)
            except Exception:
                # A port of somebody else's is broken. A loop that ended here would leave
                # every status stale without a word; the next round tries again.
                logger.exception("sync failed, will retry")

    async def _tick(self) -> None:
        while True:
            await self._clock.wait(self._period)
            self._wake_up.call(Wake.PERIOD)
