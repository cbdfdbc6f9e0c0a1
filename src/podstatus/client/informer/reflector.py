"""Keep a copy of the objects of one kind, and notify a handler of changes.

Upstream: Reflector, tools/cache/reflector.go of client-go v0.36.4. Unlike upstream, a full list is
taken periodically during the watch: it repairs and counts changes that the watch missed.
"""

import asyncio
import inspect
import logging
import random as chance
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.client.config_errors import WatchIdleError
from podstatus.client.informer.decode import ObjectKey, T
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.client.informer.lister import Lister
from podstatus.client.informer.object_store import ObjectChange
from podstatus.client.informer.reflector_state import ReflectorCounts, ReflectorState
from podstatus.client.informer.reflector_timing import ReflectorPolicy
from podstatus.client.informer.transform import Transform
from podstatus.client.rest.failure_backoff import FailureBackoff
from podstatus.client.rest.watch_events import WatchEvent
from podstatus.kube.api_errors import GoneError, RejectedError, UnavailableError
from podstatus.kube.encoding.wire_struct import Wire

logger = logging.getLogger(__name__)

WATCH_SECONDS = 300
"""Minimum timeout of a watch; the maximum is twice that, so that watches that started together do
not end together. Upstream: defaultMinWatchTimeout, reflector.go of client-go v0.36.4."""
MIN_WATCH_SECONDS = 1.0
"""A watch that ends sooner without progress counts as failed, however it ended."""
LIST_JITTER = 0.2
"""Fraction of the time between two full lists that is random."""
FIRST_RELIST_SECONDS = 2.0
"""Delay of the list after an event that was undecodable or out of order. It grows each time, up to
the time between two full lists: an object that stays undecodable must not cost a list per change.
"""
_SECOND = 1_000_000_000
_MAX_BURST_SECONDS = 0.02
"""Maximum time for consecutive events before yielding to the event loop."""


class Reflector(Generic[T]):
    """A copy of a set of objects; `run` keeps it equal to the server's, without managed fields.

    With a `Transform` instead of a kind, only the result of the transform is kept.

    The handler is called for every change, in order, in the event loop: it must not block. The
    copy has already changed by then. If the handler raises, the error is logged and counted, and
    the change is not delivered again.

    `get`, `objects`, `counts`, `staleness`, `is_failing` and `has_synced` are thread-safe. Each
    returns a consistent value, but two calls may see different states.
    """

    def __init__(
        self,
        source: ListerWatcher,
        selection: ObjectSelection,
        kind: type[T] | Transform[T],
        handler: Callable[[ObjectChange[T]], None],
        *,
        policy: ReflectorPolicy | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = chance.random,
    ) -> None:
        _check_kind_and_handler(kind, handler)
        self._selection = selection
        self._source = source
        self._policy = policy = policy or ReflectorPolicy()
        self._clock = clock or SystemClock()
        self._random = random
        self._state = ReflectorState(selection, kind, handler)
        self._lister = Lister(
            source, selection, kind, page=policy.page, max_objects=policy.max_objects
        )
        self._list_lock = asyncio.Lock()
        self._synced = asyncio.Event()
        self._relist_needed = asyncio.Event()
        self._relist_backoff = Backoff(
            initial_seconds=min(FIRST_RELIST_SECONDS, policy.list_seconds),
            max_seconds=policy.list_seconds,
        )
        self._watch_failures = FailureBackoff(
            logger, f"watch of {selection}", policy.backoff, random
        )
        self._resync_failures = FailureBackoff(
            logger, f"full list of {selection}", policy.backoff, random
        )
        self._stream: asyncio.Timeout | None = None
        self._opened_at: int | None = None
        """Monotonic time in ns at which the stream was opened; None if it was not."""
        self._no_progress = True
        """Whether the stream has delivered nothing new since it was opened."""
        self._yield_at = 0.0
        self._watch_suspect = False
        """Whether the start version of a watch was refused, and no watch has worked since."""

    @property
    def has_synced(self) -> bool:
        """Whether the first full list has been applied."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the handler has been called for the objects of the first full list."""
        await self._synced.wait()

    @property
    def counts(self) -> ReflectorCounts:
        return self._state.counts

    def staleness(self) -> float:
        """Return the seconds since a list, an event or a bookmark confirmed the copy.

        Infinite before the first list.
        """
        return self._state.staleness(self._clock.monotonic())

    @property
    def is_failing(self) -> bool:
        """Whether list and watch fail at present, so that the copy becomes stale."""
        return self._watch_failures.is_failing

    def get(self, namespace: str, name: str) -> T | None:
        """Return an object, or None; pass "" as the namespace of cluster-scoped objects."""
        return self._state.store.get(ObjectKey(namespace, name))

    def objects(self) -> list[T]:
        """Return all objects, in no particular order."""
        return self._state.store.objects()

    async def run(self) -> None:
        """List and watch until cancelled. The copy is kept for the next run."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run_watch())
            tasks.create_task(self._run_resync())

    async def _run_watch(self) -> None:
        while True:
            await self._clock.wait(await self.list_and_watch_once())

    async def _run_resync(self) -> None:
        seconds = self._until_next_list()
        while True:
            await wait_event_or_timeout(self._relist_needed, self._clock, seconds)
            if self._relist_needed.is_set():
                self._relist_backoff = self._relist_backoff.failed()
                await self._clock.wait(self._relist_backoff.delay(self._random()))
            else:
                self._relist_backoff = self._relist_backoff.reset()
            self._relist_needed.clear()
            seconds = await self.resync_once()

    async def list_and_watch_once(self) -> float:
        """List if there is no version to resume from, and watch until the stream ends.

        Returns the seconds to wait before the next call. Logs errors, does not raise them.
        """
        self._opened_at = None
        try:
            if self._state.position.must_list:
                await self._list(beside=False)
            await self._watch()
        except Exception as error:  # noqa: BLE001 - logged once per outage
            return self._failed(error)
        return 0.0

    async def resync_once(self) -> float:
        """List during the watch if there is one; return the seconds until the next list."""
        try:
            if self.has_synced:
                await self._list(beside=True)
        except Exception as error:  # noqa: BLE001 - logged once per outage
            self._state.count(failures=1)
            return self._resync_failures.failed(error, self._clock.monotonic())
        self._resync_failures.recovered(self._clock.monotonic())
        return self._until_next_list()

    def _until_next_list(self) -> float:
        return self._policy.list_seconds * (1 - LIST_JITTER * self._random())

    async def _list(self, *, beside: bool) -> None:
        state = self._state
        # One list at a time: a version reset is detected by the newest version before the request.
        async with self._list_lock:
            requested_at, newest = self._clock.monotonic(), state.position.newest
            listing = await self._lister.read(state.store.get)
            if state.apply_list(listing, requested_at, newest, beside=beside):
                self._end_stream()
        self._check_relist()
        self._synced.set()
        # A successful list does not prove that the watch works, which may be what is refused.
        if not self._watch_suspect and not beside:
            self._watch_failures.recovered(self._clock.monotonic())

    async def _watch(self) -> None:
        self._stream = stream = asyncio.timeout(None)
        try:
            async with stream, self._open() as events:
                self._stream_opened()
                health_timer = asyncio.create_task(self._mark_healthy_later())
                try:
                    async for event in events:
                        if stream.when() is None:
                            self._apply_event(event)
                        await self._yield_to_loop()
                finally:
                    health_timer.cancel()
        except TimeoutError:
            if not stream.expired():
                raise
            return  # restart from a list that was taken during the watch
        finally:
            self._stream = None
        self._stream_ended()

    def _open(self) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        selection = self._selection
        return self._source.watch(
            selection.resource,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            resource_version=self._state.position.resume_version,
            timeout_seconds=round(WATCH_SECONDS * (1 + self._random())),
            idle_timeout_seconds=self._policy.idle_timeout_seconds,
        )

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.reschedule(asyncio.get_running_loop().time())

    def _stream_opened(self) -> None:
        self._opened_at, self._no_progress = self._clock.monotonic(), True
        self._state.count(watches=1)

    async def _mark_healthy_later(self) -> None:
        """Mark a stream without events as healthy after `MIN_WATCH_SECONDS`."""
        await self._clock.wait(MIN_WATCH_SECONDS)
        self._mark_healthy(self._clock.monotonic())

    def _apply_event(self, event: WatchEvent) -> None:
        now = self._clock.monotonic()
        if self._state.apply_event(event, now):
            self._no_progress = False
        self._check_relist()
        if len(self._state.store) > self._policy.max_objects:
            raise UnavailableError(f"there are more than {self._policy.max_objects} objects")
        if not self._ended_early(now):
            self._mark_healthy(now)

    def _check_relist(self) -> None:
        if self._state.needs_relist:
            self._relist_needed.set()

    async def _yield_to_loop(self) -> None:
        """Yield every 20 ms: buffered events are read without awaiting, so a burst would starve
        other tasks."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._yield_at:
            await asyncio.sleep(0)
            self._yield_at = loop.time() + _MAX_BURST_SECONDS

    def _stream_ended(self) -> None:
        now = self._clock.monotonic()
        if self._ended_early(now):
            raise UnavailableError("the watch ended immediately after it was opened")
        self._mark_healthy(now)

    def _mark_healthy(self, now: int) -> None:
        self._watch_suspect = False
        self._watch_failures.recovered(now)

    def _ended_early(self, now: int) -> bool:
        """Whether the stream made no progress within `MIN_WATCH_SECONDS`, or was not opened."""
        if self._opened_at is None:
            return True
        return self._no_progress and now - self._opened_at < MIN_WATCH_SECONDS * _SECOND

    def _failed(self, error: Exception) -> float:
        """Log and count the error; return the seconds before the next attempt."""
        now = self._clock.monotonic()
        if not self._ended_early(now):
            self._mark_healthy(now)
            if isinstance(error, WatchIdleError):
                # Not an error: some servers send no bookmarks while no object changes.
                self._state.count(silences=1)
                logger.debug("watch was idle, reopening it: %s", self._selection)
                return 0.0
        was_suspect = self._watch_suspect
        if _needs_list(error):
            self._state.position.invalidate()
            self._watch_suspect = True
        if _is_expired(error):
            self._state.count(expired=1)
            if not was_suspect:
                logger.info("watch expired, will list again: %s error=%s", self._selection, error)
                return 0.0
        self._state.count(failures=1)
        return self._watch_failures.failed(error, now)


def _check_kind_and_handler(kind: object, handler: object) -> None:
    """Raise TypeError for an unusable kind or handler."""
    kind = kind.kind if isinstance(kind, Transform) else kind
    if not (isinstance(kind, type) and issubclass(kind, Wire) and hasattr(kind, "metadata")):
        raise TypeError(
            f"{kind!r} is not a kind; pass a type of podstatus.kube, such as Pod or Node, or a "
            "subclass of podstatus.kube.objects.cluster.KubeObject with the fields that you need"
        )
    if inspect.iscoroutinefunction(handler):
        raise TypeError(
            "the handler is a coroutine function, which would never be awaited; pass a plain "
            "function, which may for example put changes into an asyncio.Queue"
        )


def _is_expired(error: Exception) -> bool:
    return isinstance(error, GoneError) and error.code == 410


def _needs_list(error: Exception) -> bool:
    """Whether the server may have refused the start version of the watch.

    504 is the response for a version that the server has not reached, and may never reach.
    """
    if isinstance(error, GoneError | RejectedError):
        return True
    return isinstance(error, UnavailableError) and error.code == 504
