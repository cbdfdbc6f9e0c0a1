"""Keeps a copy of the objects of one kind, and tells what changes.

Upstream: Reflector, tools/cache/reflector.go of client-go v0.36.4. Unlike it, a full list is taken
now and then beside the running watch: it repairs what the watch missed, and counts it.
"""

import asyncio
import inspect
import logging
import random as chance
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic

from podstatus.base.aio import SystemClock, wait_event_or_timeout
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.client.errors import SilentError
from podstatus.client.informer.decode import ObjectKey, T
from podstatus.client.informer.lister import Lister
from podstatus.client.informer.listwatch import Selection, Source
from podstatus.client.informer.reflector_counts import ReflectorCounts
from podstatus.client.informer.reflector_policy import ReflectorPolicy
from podstatus.client.informer.reflector_state import Reflection
from podstatus.client.informer.store import Change
from podstatus.client.informer.transform import Digest
from podstatus.client.rest.failure_backoff import Outage
from podstatus.client.rest.resources import Resource
from podstatus.client.rest.watch import WatchEvent
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.errors import GoneError, RejectedError, UnavailableError

logger = logging.getLogger(__name__)

WATCH_SECONDS = 300
"""The shortest time for which a watch is asked for; the longest is twice that, so that watches
that began together do not end together. Upstream: defaultMinWatchTimeout, reflector.go of
client-go v0.36.4."""
SHORT_SECONDS = 1.0
"""A watch that is over sooner and told nothing new has failed, however it ended."""
SPREAD = 0.2
"""The part of the time between two full lists that is left to chance."""
FIRST_RELIST_SECONDS = 2.0
"""After an event that could not be decoded or came out of order. Longer each time, up to the time
between two full lists: an object that never can be decoded must not cost a list per change."""
_SECOND = 1_000_000_000
_TURN_SECONDS = 0.02
"""For which events may be taken in a row."""


class Reflector(Generic[T]):
    """A copy of a set of objects; `run` keeps it like the server's, but for managed fields.

    With a `Digest` for a kind it is a copy of what is made of each object, and of nothing else.

    The handler is told of every change, in order, in the event loop: it must not block. The copy
    has changed already when it is told. If it raises, that is logged and counted, and the change
    counts as told.

    `get`, `objects`, `counts`, `staleness`, `is_failing` and `has_synced` may be asked from any
    thread: each shows one moment, two of them perhaps two moments.
    """

    def __init__(
        self,
        source: Source,
        resource: Resource,
        kind: type[T] | Digest[T],
        handler: Callable[[Change[T]], None],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        policy: ReflectorPolicy | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = chance.random,
    ) -> None:
        _check_kind_and_handler(kind, handler)
        self._selection = selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        self._source = source
        self._policy = policy = policy or ReflectorPolicy()
        self._clock = clock or SystemClock()
        self._random = random
        self._reflection = Reflection(selection, kind, handler)
        self._lister = Lister(
            source, selection, kind, page=policy.page, max_objects=policy.max_objects
        )
        self._listing = asyncio.Lock()
        self._synced = asyncio.Event()
        self._doubts = asyncio.Event()
        self._relisting = Backoff(
            initial_seconds=min(FIRST_RELIST_SECONDS, policy.list_seconds),
            max_seconds=policy.list_seconds,
        )
        self._following = Outage(logger, f"watch of {selection}", policy.backoff, random)
        self._repairing = Outage(logger, f"full list of {selection}", policy.backoff, random)
        self._stream: asyncio.Timeout | None = None
        self._opened: int | None = None
        """When the stream was opened; None if it was not, this time."""
        self._is_idle = True
        """Whether the stream has told nothing new since it was opened."""
        self._turn_ends = 0.0
        self._is_unproven = False
        """Whether a watch was refused from where it was to begin, and none has worked since."""

    @property
    def has_synced(self) -> bool:
        """Whether there was a full list."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Come back after the first full list, when the handler was told of its objects."""
        await self._synced.wait()

    @property
    def counts(self) -> ReflectorCounts:
        """What was seen until now."""
        return self._reflection.counts

    def staleness(self) -> float:
        """Seconds since a list, an event or a bookmark confirmed that the copy is right.

        Infinite before the first list.
        """
        return self._reflection.staleness(self._clock.monotonic())

    @property
    def is_failing(self) -> bool:
        """Whether the server cannot be followed at the moment, so that the copy grows old."""
        return self._following.is_on

    def get(self, namespace: str, name: str) -> T | None:
        """An object, if it is there; those of a cluster have an empty namespace."""
        return self._reflection.replica.get(ObjectKey(namespace, name))

    def objects(self) -> list[T]:
        """All objects, in no particular order."""
        return self._reflection.replica.objects()

    async def run(self) -> None:
        """Follow the server until cancelled. What is known stays known for the next time."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._repair())

    async def _follow(self) -> None:
        while True:
            await self._clock.wait(await self.follow_once())

    async def _repair(self) -> None:
        seconds = self._until_next_list()
        while True:
            await wait_event_or_timeout(self._doubts, self._clock, seconds)
            if self._doubts.is_set():
                self._relisting = self._relisting.failed()
                await self._clock.wait(self._relisting.delay(self._random()))
            else:
                self._relisting = self._relisting.reset()
            self._doubts.clear()
            seconds = await self.repair_once()

    async def follow_once(self) -> float:
        """List, if there is nothing to go on from, and watch until the stream ends.

        Returns the seconds to wait before the next time.
        """
        self._opened = None
        try:
            if self._reflection.progress.must_list:
                await self._list(beside=False)
            await self._watch()
        except Exception as error:  # noqa: BLE001 - logged, once
            return self._failed(error)
        return 0.0

    async def repair_once(self) -> float:
        """List beside the watch, if there is one; returns the seconds until the next time."""
        try:
            if self.has_synced:
                await self._list(beside=True)
        except Exception as error:  # noqa: BLE001 - logged, once
            self._reflection.count(failures=1)
            return self._repairing.failed(error, self._clock.monotonic())
        self._repairing.over(self._clock.monotonic())
        return self._until_next_list()

    def _until_next_list(self) -> float:
        return self._policy.list_seconds * (1 - SPREAD * self._random())

    async def _list(self, *, beside: bool) -> None:
        reflection = self._reflection
        # One at a time: that versions went back shows by what was known before asking.
        async with self._listing:
            asked, newest = self._clock.monotonic(), reflection.progress.newest
            listing = await self._lister.read(reflection.replica.get)
            if reflection.take_list(listing, asked, newest, beside=beside):
                self._end_stream()
        self._note_doubts()
        self._synced.set()
        # That a list works does not say that the watch does, which may be what is refused.
        if not self._is_unproven and not beside:
            self._following.over(self._clock.monotonic())

    async def _watch(self) -> None:
        self._stream = stream = asyncio.timeout(None)
        try:
            async with stream, self._open() as events:
                self._stream_opened()
                settling = asyncio.create_task(self._settle())
                try:
                    async for event in events:
                        if stream.when() is None:
                            self._take_event(event)
                        await self._let_others_go_on()
                finally:
                    settling.cancel()
        except TimeoutError:
            if not stream.expired():
                raise
            return  # to begin anew from a list that was taken meanwhile
        finally:
            self._stream = None
        self._stream_ended()

    def _open(self) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        asked = self._selection
        return self._source.watch(
            asked.resource,
            namespace=asked.namespace,
            label_selector=asked.label_selector,
            field_selector=asked.field_selector,
            resource_version=self._reflection.progress.resume_at,
            timeout_seconds=round(WATCH_SECONDS * (1 + self._random())),
            silence_seconds=self._policy.silence_seconds,
        )

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.reschedule(asyncio.get_running_loop().time())

    def _stream_opened(self) -> None:
        self._opened, self._is_idle = self._clock.monotonic(), True
        self._reflection.count(watches=1)

    async def _settle(self) -> None:
        """Take a stream for a good one after a moment, though it has nothing to tell."""
        await self._clock.wait(SHORT_SECONDS)
        self._works(self._clock.monotonic())

    def _take_event(self, event: WatchEvent) -> None:
        now = self._clock.monotonic()
        if self._reflection.take_event(event, now):
            self._is_idle = False
        self._note_doubts()
        if len(self._reflection.replica) > self._policy.max_objects:
            raise UnavailableError(f"there are more than {self._policy.max_objects} objects")
        if not self._is_short(now):
            self._works(now)

    def _note_doubts(self) -> None:
        if self._reflection.is_doubtful:
            self._doubts.set()

    async def _let_others_go_on(self) -> None:
        """Give way now and then: of events that have come already nobody waits for the next."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = loop.time() + _TURN_SECONDS

    def _stream_ended(self) -> None:
        now = self._clock.monotonic()
        if self._is_short(now):
            raise UnavailableError("the watch ended as soon as it had begun")
        self._works(now)

    def _works(self, now: int) -> None:
        self._is_unproven = False
        self._following.over(now)

    def _is_short(self, now: int) -> bool:
        """Whether the stream has been of no use yet: it would be no wonder if it failed again."""
        if self._opened is None:
            return True
        return self._is_idle and now - self._opened < SHORT_SECONDS * _SECOND

    def _failed(self, error: Exception) -> float:
        """Decide how to go on, and when."""
        now = self._clock.monotonic()
        if not self._is_short(now):
            self._works(now)
            if isinstance(error, SilentError):
                # Nothing to worry about: not all servers send bookmarks of what rests.
                self._reflection.count(silences=1)
                logger.debug("watch was silent, opened anew: %s", self._selection)
                return 0.0
        was_unproven = self._is_unproven
        if _needs_list(error):
            self._reflection.progress.begin_anew()
            self._is_unproven = True
        if _is_expired(error):
            self._reflection.count(expired=1)
            if not was_unproven:
                logger.info("watch expired, will list: %s error=%s", self._selection, error)
                return 0.0
        self._reflection.count(failures=1)
        return self._following.failed(error, now)


def _check_kind_and_handler(kind: object, handler: object) -> None:
    """Raise TypeError for what can never work."""
    kind = kind.kind if isinstance(kind, Digest) else kind
    if not (isinstance(kind, type) and issubclass(kind, Wire) and hasattr(kind, "metadata")):
        raise TypeError(
            f"{kind!r} is no kind of object; pass a type of podstatus.kube, such as Pod or Node, "
            "or a subclass of podstatus.kube.objects.cluster.Named with the fields that you need"
        )
    if inspect.iscoroutinefunction(handler):
        raise TypeError(
            "the handler is a coroutine function, which nobody would await; pass a plain one that "
            "hands work on, to an asyncio.Queue for example"
        )


def _is_expired(error: Exception) -> bool:
    return isinstance(error, GoneError) and error.code == 410


def _needs_list(error: Exception) -> bool:
    """Whether the server may object to where the watch begins.

    504 is the answer to a version that the server has not reached, and perhaps never will.
    """
    if isinstance(error, GoneError | RejectedError):
        return True
    return isinstance(error, UnavailableError) and error.code == 504
