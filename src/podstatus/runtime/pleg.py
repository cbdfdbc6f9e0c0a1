"""What is known through a runtime: all its pods, once a second, and one pod whenever asked.

    view = RuntimeView(runtime, clock=clock, on_change=workers.look_at)
    await view.run()

Upstream: GenericPLEG, pleg/generic.go v1.36.4. There events about containers are made of the
differences; here whoever has to look at a pod again is told its UID. The hints of a runtime are
followed at once, as EventedPLEG does (pleg/evented.go), and the relisting goes on all the same.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Protocol

import msgspec
from msgspec import structs

from podstatus.base.aio import boottime_ns
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock, Elapsed
from podstatus.base.failure_log import FailureLog
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.kube.scalars.go_text import go_duration
from podstatus.runtime.pod_cache import PodCache
from podstatus.runtime.port import Runtime, RuntimeDownError, RuntimePod

logger = logging.getLogger(__name__)

RELIST_THRESHOLD_SECONDS = 180
"""Upstream's: a runtime that was not listed for longer makes its node NotReady."""
_SECOND = 1_000_000_000


class RelistCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What the relisting did since it began."""

    relists: int = 0
    """Lists of all pods that the runtime gave."""
    failures: int = 0
    """Lists of all pods that it failed to give."""
    hints: int = 0
    """Pods that it said to look at."""
    interruptions: int = 0
    """How often its hints broke off."""


class RelistObserver(Protocol):
    """Who wants to know how long lists take. Must not wait."""

    def relist_began(self, since_last: float) -> None:
        """All pods are to be listed; so many seconds after the last list began."""

    def relisted(self, seconds: float) -> None:
        """The list has come, or has failed."""

    def pod_relisted(self, seconds: float) -> None:
        """The same, of one pod."""


def _no_heartbeat() -> None:
    """For those whose pulse nobody takes."""


class _NoObserver:
    """Nobody wants to know."""

    def relist_began(self, since_last: float) -> None:
        """Nobody is told."""

    def relisted(self, seconds: float) -> None:
        """Nobody is told."""

    def pod_relisted(self, seconds: float) -> None:
        """Nobody is told."""


class Pleg:
    """The pods of a runtime as last known. For one event loop."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        clock: Clock,
        on_change: Callable[[PodUID], None],
        period: float = 1.0,
        heartbeat: Callable[[], None] = _no_heartbeat,
        random: Callable[[], float] = random.random,
        observer: RelistObserver | None = None,
        monotonic: Callable[[], int] = boottime_ns,
    ) -> None:
        """`monotonic`: nanoseconds of a clock that nobody sets, for how old the last list is."""
        self._runtime = runtime
        self._clock = clock
        self._monotonic = monotonic
        self._on_change = on_change
        self._period = period
        self._heartbeat = heartbeat
        self._random = random
        self._observer = observer or _NoObserver()
        self._since_relist: Elapsed | None = None
        """Since all pods were last asked for."""
        self._cache = PodCache()
        self._last_relist: int | None = None
        """When the newest successful list was asked for."""
        self._last_relist_monotonic = 0
        """The same, by the clock that nobody sets."""
        self._relist_failures = _failure_log("listing the pods of the runtime")
        self._watch_failures = _failure_log("following the changes of the runtime")
        self._counts = RelistCounts()

    async def run(self) -> None:
        """List and follow the runtime, until cancelled; no failure of it ends this."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._relist_loop())
            tasks.create_task(self._watch_loop())

    def pods(self) -> Mapping[PodUID, RuntimePod]:
        """All pods the runtime has something of, at one moment, as last known."""
        return self._cache.pods()

    def find(self, uid: PodUID) -> RuntimePod | None:
        """This pod as last known, None if the runtime had nothing of it."""
        return self._cache.find(uid)

    @property
    def has_listed(self) -> bool:
        """Whether all pods were listed once: before, no pod counts as gone."""
        return self._last_relist is not None

    @property
    def age_seconds(self) -> float | None:
        """Since all pods were last listed; None if they never were."""
        return None if self._last_relist is None else self._relist_age() / _SECOND

    @property
    def counts(self) -> RelistCounts:
        """What was done until now."""
        return self._counts

    @property
    def last_listed(self) -> int | None:
        """When the newest list that came was asked for, in nanoseconds since the Unix epoch."""
        return self._last_relist

    def unhealthy_reason(self) -> str | None:
        """Why the runtime counts as unhealthy, in upstream's words; None if it does not.

        Upstream: Healthy, pleg/generic.go, and runtimeErrors, runtime.go v1.36.4; elapsed time is
        given in whole seconds, so that the Node does not change with every look at it.
        """
        if self._last_relist is None:
            why = (
                f": {self._relist_failures.error}"
                if self._relist_failures.error is not None
                else ""
            )
            return f"PLEG is not healthy: pleg has yet to be successful{why}"
        seconds = self._relist_age() // _SECOND
        if seconds <= RELIST_THRESHOLD_SECONDS:
            return None
        return (
            f"PLEG is not healthy: pleg was last seen active {go_duration(seconds)} ago; "
            f"threshold is {go_duration(RELIST_THRESHOLD_SECONDS)}"
        )

    async def refresh(self, uid: PodUID, *, notify: bool = True) -> PodFacts:
        """Ask the runtime about one pod now; `PodFacts()` if it has nothing of it.

        Whoever is told of changes is told of what this finds, too, unless it is they who ask.
        Raises RuntimeDownError.
        """
        asked, elapsed = self._cache.next_request(), Elapsed(self._clock)
        try:
            found = next(iter(await self._runtime.list_pods(uid)), None)
        finally:
            self._observer.pod_relisted(elapsed.seconds())
        if self._cache.apply_pod(asked, uid, found) and notify:
            self._on_change(uid)
        # An answer to a later question may have come first.
        newest = self._cache.find(uid)
        return newest.facts if newest is not None else PodFacts()

    async def relist_once(self) -> None:
        """List all pods and tell of those that differ; a failure changes nothing that is known."""
        asked, began, steady = self._cache.next_request(), self._clock.now(), self._monotonic()
        if self._since_relist is not None:
            self._observer.relist_began(self._since_relist.seconds())
        self._since_relist = elapsed = Elapsed(self._clock)
        try:
            pods = await self._runtime.list_pods()
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            self._counts = structs.replace(self._counts, failures=self._counts.failures + 1)
            self._relist_failures.failed(error)
            return
        finally:
            self._observer.relisted(elapsed.seconds())
        self._counts = structs.replace(self._counts, relists=self._counts.relists + 1)
        self._relist_failures.recovered()
        self._last_relist, self._last_relist_monotonic = began, steady
        for uid in self._cache.apply_list(asked, pods):
            self._on_change(uid)

    async def watch_once(self, changes: AsyncIterator[PodUID]) -> None:
        """Look at the next pod that the runtime says has changed.

        Raises StopAsyncIteration where there are no more, and whatever `changes` raises.
        """
        uid = await anext(changes)
        self._watch_failures.recovered()
        self._counts = structs.replace(self._counts, hints=self._counts.hints + 1)
        # What is missed here the next list shows.
        with suppress(RuntimeDownError):
            await self.refresh(uid)

    def _relist_age(self) -> int:
        return self._monotonic() - self._last_relist_monotonic

    async def _relist_loop(self) -> None:
        while True:
            self._heartbeat()
            await self.relist_once()
            await self._clock.wait(self._period)

    async def _watch_loop(self) -> None:
        backoff = Backoff(initial_seconds=self._period)
        while True:
            before = self._counts.hints
            error = await self._watch_until_error()
            self._counts = structs.replace(
                self._counts, interruptions=self._counts.interruptions + 1
            )
            self._watch_failures.failed(error)
            if self._counts.hints > before:
                backoff = backoff.reset()
            backoff = backoff.failed()
            await self._clock.wait(backoff.delay(self._random()))

    async def _watch_until_error(self) -> Exception:
        try:
            changes = self._runtime.changes()
            while True:
                await self.watch_once(changes)
        except StopAsyncIteration:
            return RuntimeDownError("the changes ended; they should not")
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            return error


def _failure_log(what: str) -> FailureLog:
    return FailureLog(logger, what, expected=RuntimeDownError)
