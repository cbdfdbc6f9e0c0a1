"""Has the disk hold what is known of alerts that live: what changes is written a moment later.

    keeper = Keeper(AlertStore.open(path), clock=clock)
    keeper.keep(alert)
    await keeper.written()

It holds what is to be in the file, and which of it is not yet there. So a disk that is full for
a day costs no memory: what became of an alert meanwhile is written once, as it is then. Nobody
waits long for the disk, and nothing fails because of it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import structs

from podstatus.alerts.delivery.queue import DeliveryProgress, StoredAlert
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog

logger = logging.getLogger(__name__)

Waiter = asyncio.Future[None]

_PERIOD_SECONDS = 0.25
"""Between two writes that nobody waits for."""
_CHECK_SECONDS = 5.0
"""Between two looks whether the file is still there."""
_DISK_TIMEOUT_SECONDS = 2.0
"""How long somebody waits for the disk. Longer, and it is better to tell twice than late."""
_SHUTDOWN_SECONDS = 1.0
"""How long the disk may take at the end."""
_MAX_CHANGED = 10_000
"""Alerts whose changes are written one by one."""
_RETRY = Backoff(initial_seconds=1.0, max_seconds=30.0, jitter=0.0)


class AlertPersister:
    """Alerts that live and how far their receivers are. For one event loop."""

    def __init__(self, store: AlertStore | None, *, clock: Clock) -> None:
        """With what is in the file. Without one nothing outlives the process."""
        self._store = store
        self._clock = clock
        self._alerts: dict[AlertId, StoredAlert] = {}
        self._changed: set[AlertId] = set()
        self._needs_full_write = True
        """The first time too, whatever another version has left in the file."""
        self._dirty = asyncio.Event()
        self._urgent = asyncio.Event()
        self._waiters: list[Waiter] = []
        self._is_disk_stalled = False
        self._retry = _RETRY
        self._failures = FailureLog(logger, "the file of alerts", expected=AlertStoreError)
        self._read_error = ""
        """Why the file could not be read; then it is left as it is."""
        self._read()

    @property
    def stored_alerts(self) -> Mapping[AlertId, StoredAlert]:
        """All there is to keep."""
        return self._alerts

    @property
    def problem(self) -> str:
        """Why nothing is written at the moment; empty: it is, or there is no file."""
        if self._read_error:
            return self._read_error
        if self._is_disk_stalled:
            return "the disk does not answer"
        return "" if self._failures.error is None else str(self._failures.error)

    def save(self, alert: Alert) -> None:
        """An alert has changed. One that is over is forgotten when all have been told."""
        known = self._alerts.get(alert.id)
        self._update(
            StoredAlert(alert=alert) if known is None else structs.replace(known, alert=alert)
        )

    def set_progress(self, id_: AlertId, action: Action, progress: DeliveryProgress | None) -> None:
        """A receiver of an alert got on; None: there is nothing left to tell it."""
        known = self._alerts.get(id_)
        if known is not None:
            self._update(known.with_progress(action, progress))

    async def flushed(self) -> None:
        """Come back when all of this is on the disk, or the disk cannot be waited for."""
        if self._store is None or self.problem:
            return
        done = asyncio.get_running_loop().create_future()
        self._waiters.append(done)
        self._dirty.set()
        self._urgent.set()
        await done

    async def run(self) -> None:
        """Write until cancelled; then what is left, if that is quick."""
        thread = ThreadPoolExecutor(1, "alerts")
        try:
            while True:
                await wait_event_or_timeout(self._dirty, self._clock, _CHECK_SECONDS)
                await self.write_once(thread)
                await self._wait()
        finally:
            await self._final_write(thread)
            thread.shutdown(wait=False)

    async def write_once(self, thread: ThreadPoolExecutor) -> None:
        """Write what has changed. What cannot be written is tried again later."""
        self._dirty.clear()
        self._urgent.clear()
        waiters, self._waiters = self._waiters, []
        try:
            if work := self._next_write():
                writing = asyncio.get_running_loop().run_in_executor(thread, work)
                writing.add_done_callback(_consume_exception)
                await self._watch_write(writing, waiters)
                await writing
            self._retry = self._retry.reset()
            self._failures.recovered()
        except Exception as error:  # noqa: BLE001 - a mistake of ours ends no node; it is logged
            self._on_failure(error)
        except BaseException:
            self._needs_full_write = True
            raise
        finally:
            self._is_disk_stalled = False
            _release(waiters)

    async def _watch_write(self, writing: asyncio.Future[None], waiters: list[Waiter]) -> None:
        """Let nobody wait for a disk that does not answer."""
        due = asyncio.ensure_future(self._clock.wait(_DISK_TIMEOUT_SECONDS))
        try:
            await asyncio.wait({writing, due}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            due.cancel()
        if not writing.done():
            self._is_disk_stalled = True
            _release(waiters)
            _release(self._waiters)

    def _read(self) -> None:
        if self._store is None:
            return
        try:
            self._alerts = self._store.read()
        except AlertStoreError as error:
            # To write what is known, which is nothing, would lose what is in it.
            self._store = None
            self._read_error = (
                f"{error}; start the agent again, or move the file away to begin anew"
            )
            logger.error("alerts will not outlive the agent: error=%s", self._read_error)

    def _update(self, kept: StoredAlert) -> None:
        id_ = kept.alert.id
        if kept.is_done:
            self._alerts.pop(id_, None)
        else:
            self._alerts[id_] = kept
        if self._store is not None:
            self._changed.add(id_)
            self._dirty.set()
        if len(self._changed) > _MAX_CHANGED:
            self._schedule_full_write()

    def _next_write(self) -> Callable[[], None] | None:
        """What is to be done to the file, if anything."""
        store, changed, is_whole = self._store, self._changed, self._needs_full_write
        self._changed, self._needs_full_write = set(), False
        if store is None:
            return None
        if not (changed or is_whole):
            return store.check
        if is_whole:
            return partial(store.replace, dict(self._alerts))
        kept = {id_: self._alerts[id_] for id_ in changed if id_ in self._alerts}
        return partial(store.write, kept, changed - kept.keys())

    def _schedule_full_write(self) -> None:
        """Write the whole next time: of many changes, most are of alerts that are gone."""
        self._needs_full_write = True
        self._changed.clear()

    def _on_failure(self, error: Exception) -> None:
        self._schedule_full_write()
        self._dirty.set()
        # Who came meanwhile does not wait for the next time.
        _release(self._waiters)
        self._retry = self._retry.failed()
        self._failures.failed(error)

    async def _wait(self) -> None:
        if self._failures.error is not None:
            await self._clock.wait(self._retry.delay(0))
        else:
            await wait_event_or_timeout(self._urgent, self._clock, _PERIOD_SECONDS)

    async def _final_write(self, thread: ThreadPoolExecutor) -> None:
        writing = asyncio.ensure_future(self.write_once(thread))
        done, _ = await asyncio.wait({writing}, timeout=_SHUTDOWN_SECONDS)
        if not done:
            writing.cancel()
            await asyncio.wait({writing})
            logger.warning("alerts not written at the end: the disk takes too long")
        elif (error := writing.exception()) is not None:
            logger.warning("alerts not written at the end: error=%s", error)


def _consume_exception(writing: asyncio.Future[None]) -> None:
    """Of a failure that nobody waits for any more: what is left is written anew at the end."""
    if not writing.cancelled():
        writing.exception()


def _release(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()
