"""What all controllers do: follow changes, reconcile when woken up, retry failed writes."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.storage.store import DELETED, StorageError, StorageKey, Store, StoreChange
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.wake_up import WakeUp

BATCH_SIZE = 50
"""Objects to reconcile before yielding to other tasks: some milliseconds."""
RETRY_SECONDS = 1.0
"""Delay before a failed write is retried."""


class ChangeFollower(ABC):
    """Follows changes of the store with `on_change`; writes through the registry in `run`."""

    resources: tuple[str, ...]
    """The resources whose objects are observed at the start, in this order."""
    activity: str
    """What the log says has failed."""
    rejection: str
    """The log line of a rejected write, to which the key of the object is added."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._logger = logging.getLogger(type(self).__module__)
        self._failure_log = FailureLog(self._logger, self.activity, expected=StorageError)
        for resource in self.resources:
            for stored in store.objects(resource):
                self._observe(resource, stored.key, stored.data)

    def on_change(self, resource: str, change: StoreChange) -> None:
        """Record what has to be done. Never blocks."""
        data = None if change.type == DELETED else change.new.data
        self._observe(resource, change.new.key, data)

    @abstractmethod
    async def run(self) -> None:
        """Do what has to be done. Runs until cancelled."""

    @abstractmethod
    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        """Record what an object requires; None if it was deleted."""

    def _try_write(self, key: StorageKey, write: Callable[[], object]) -> bool:
        """Write an object; return False if the storage failed, so it has to be retried.

        A rejected write is logged, and not retried.
        """
        try:
            write()
        except StatusError as error:
            name = f"{key.namespace}/{key.name}" if key.namespace else key.name
            self._logger.warning("%s=%s error=%s", self.rejection, name, error)
        except StorageError as error:
            self._failure_log.failed(error)
            return False
        return True


class Controller(ChangeFollower):
    """Reconciles each pending object after a change, until its write succeeds."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._wake_up = WakeUp[str]()
        self._pending: dict[StorageKey, None] = {}
        """Objects to reconcile, in the order of their changes (an ordered set)."""
        super().__init__(store, registry, clock)

    async def run(self) -> None:
        """Reconcile after each relevant change. Runs until cancelled."""
        while True:
            await self._wake_up.wait()
            if await self._reconcile_all():
                self._failure_log.recovered()
            else:
                # Nothing signals that the disk has space again, so poll.
                await self._clock.wait(RETRY_SECONDS)
                self._wake_up.set("retry")

    async def _reconcile_all(self) -> bool:
        """Reconcile all pending objects; return whether all writes succeeded."""
        succeeded = True
        for number, key in enumerate(list(self._pending), start=1):
            if key in self._pending:
                succeeded &= self._try_reconcile(key)
            if number % BATCH_SIZE == 0:
                await asyncio.sleep(0)
        return succeeded

    def _try_reconcile(self, key: StorageKey) -> bool:
        """Reconcile an object; return False if it has to be retried."""
        return self._try_write(key, lambda: self._reconcile(key))

    @abstractmethod
    def _reconcile(self, key: StorageKey) -> None:
        """Write what a pending object requires. Raises StatusError, StorageError."""


class PeriodicController(ChangeFollower):
    """Checks everything once per period; what could not be written is found again."""

    def __init__(
        self, store: Store, registry: Registry, clock: Clock, *, period_seconds: float
    ) -> None:
        self._period_seconds = period_seconds
        super().__init__(store, registry, clock)

    async def run(self) -> None:
        """Check everything once per period. Runs until cancelled."""
        while True:
            if await self.check_once():
                self._failure_log.recovered()
            await self._clock.wait(self._period_seconds)

    @abstractmethod
    async def check_once(self) -> bool:
        """Check everything; return whether all writes succeeded."""
