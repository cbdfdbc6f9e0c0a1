"""Write active alerts and the progress of their deliveries to disk, shortly after a change.

    persister = AlertPersister(AlertStore.open(path), clock=clock)
    persister.save(alert)
    await persister.flushed()

Level-based: it holds the desired content of the file and the set of changed alerts. A disk that is
full for a day therefore costs no memory, and an alert that changed meanwhile is written once, in
its latest state. Callers wait for the disk for a bounded time, and never fail because of it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import structs

from podstatus.alerts.delivery.decide.queue import DeliveryProgress, StoredAlert
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.timeouts import wait_event_or_timeout

logger = logging.getLogger(__name__)

Waiter = asyncio.Future[None]

_PERIOD_SECONDS = 0.25
"""Between two writes, if no caller waits."""
_CHECK_SECONDS = 5.0
"""Between two checks that the file still exists."""
_DISK_TIMEOUT_SECONDS = 2.0
"""How long a caller waits for the disk. After that, a repeated delivery is better than a late
one."""
_SHUTDOWN_SECONDS = 1.0
"""How long the final write may take on shutdown."""
_MAX_CHANGED = 10_000
"""Changed alerts that are written one by one; above this, the whole file is written."""
_RETRY = Backoff(initial_seconds=1.0, max_seconds=30.0, jitter=0.0)


class AlertPersister:
    """Persists active alerts and their delivery progress. For one event loop."""

    def __init__(self, store: AlertStore | None, *, clock: Clock) -> None:
        """Loads the alerts of the store. Without a store, nothing survives the process."""
        self._store = store
        self._clock = clock
        self._alerts: dict[AlertId, StoredAlert] = {}
        self._changed: set[AlertId] = set()
        self._needs_full_write = True
        """Also for the first write, whatever another version left in the file."""
        self._dirty = asyncio.Event()
        self._urgent = asyncio.Event()
        self._waiters: list[Waiter] = []
        self._is_disk_stalled = False
        self._retry = _RETRY
        self._failures = FailureLog(logger, "writing alerts", expected=AlertStoreError)
        self._read_error = ""
        """Why the file could not be read; it is then left unchanged."""
        self._read()

    @property
    def stored_alerts(self) -> Mapping[AlertId, StoredAlert]:
        """The desired content of the file."""
        return self._alerts

    @property
    def problem(self) -> str:
        """Why alerts are currently not written; empty if they are, or if there is no store."""
        if self._read_error:
            return self._read_error
        if self._is_disk_stalled:
            return "the disk is not responding"
        return "" if self._failures.error is None else str(self._failures.error)

    def save(self, alert: Alert) -> None:
        """Record a changed alert. A resolved one is removed once all its deliveries are done."""
        stored = self._alerts.get(alert.id)
        self._update(
            StoredAlert(alert=alert) if stored is None else structs.replace(stored, alert=alert)
        )

    def set_progress(self, id_: AlertId, action: Action, progress: DeliveryProgress | None) -> None:
        """Record the progress of a delivery; None removes it."""
        stored = self._alerts.get(id_)
        if stored is not None:
            self._update(stored.with_progress(action, progress))

    async def flushed(self) -> None:
        """Return when all changes are on disk, or when the disk fails or is too slow."""
        if self._store is None or self.problem:
            return
        done = asyncio.get_running_loop().create_future()
        self._waiters.append(done)
        self._dirty.set()
        self._urgent.set()
        await done

    async def run(self) -> None:
        """Write until cancelled; then write what is left, within a second."""
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
        """Write the changes. A failed write is retried later."""
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
        except Exception as error:  # noqa: BLE001 - logged and retried
            self._on_failure(error)
        except BaseException:
            self._needs_full_write = True
            raise
        finally:
            self._is_disk_stalled = False
            _release(waiters)

    async def _watch_write(self, writing: asyncio.Future[None], waiters: list[Waiter]) -> None:
        """Release the waiting callers if the disk does not respond in time."""
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
            # Writing an empty set would delete the alerts in the file.
            self._store = None
            self._read_error = f"{error}; restart the agent, or move the file away to start empty"
            logger.error("alerts will not survive a restart: error=%s", self._read_error)

    def _update(self, entry: StoredAlert) -> None:
        id_ = entry.alert.id
        if entry.is_done:
            self._alerts.pop(id_, None)
        else:
            self._alerts[id_] = entry
        if self._store is not None:
            self._changed.add(id_)
            self._dirty.set()
        if len(self._changed) > _MAX_CHANGED:
            self._schedule_full_write()

    def _next_write(self) -> Callable[[], None] | None:
        """Return the next operation on the file, if any."""
        store, changed, write_all = self._store, self._changed, self._needs_full_write
        self._changed, self._needs_full_write = set(), False
        if store is None:
            return None
        if not (changed or write_all):
            return store.check
        if write_all:
            return partial(store.replace, dict(self._alerts))
        entries = {id_: self._alerts[id_] for id_ in changed if id_ in self._alerts}
        return partial(store.write, entries, changed - entries.keys())

    def _schedule_full_write(self) -> None:
        """Write all alerts next time: after many changes, most changed alerts are gone."""
        self._needs_full_write = True
        self._changed.clear()

    def _on_failure(self, error: Exception) -> None:
        self._schedule_full_write()
        self._dirty.set()
        # Callers that arrived meanwhile do not wait for the retry.
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
            logger.warning("cannot write alerts before shutdown: the disk is too slow")
        elif (error := writing.exception()) is not None:
            logger.warning("cannot write alerts before shutdown: error=%s", error)


def _consume_exception(writing: asyncio.Future[None]) -> None:
    """Retrieve the exception of an abandoned write; the final write repeats its work."""
    if not writing.cancelled():
        writing.exception()


def _release(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()
