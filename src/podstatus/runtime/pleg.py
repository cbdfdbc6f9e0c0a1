"""Pod lifecycle event generator: relists all pods once a second, and one pod on demand.

    pleg = Pleg(
        runtime, clock=clock, on_change=workers.wake, heartbeat=heartbeat, metrics=metrics
    )
    await pleg.run()

Upstream: GenericPLEG, pleg/generic.go v1.36.4. Upstream derives container events from the
differences between two lists; here `on_change` receives the UID of each pod that differs. A pod
that the runtime's change feed names is refreshed at once, as in EventedPLEG (pleg/evented.go);
relisting continues regardless.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.kube.scalars.duration import format_duration
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.pod_cache import PodCache
from podstatus.runtime.port import Runtime, RuntimeDownError, RuntimePod

logger = logging.getLogger(__name__)

RELIST_THRESHOLD_SECONDS = 180
"""Upstream's: the node becomes NotReady if no list succeeded for longer than this."""
_SECOND = 1_000_000_000


class Pleg:
    """The newest known state of all pods of a runtime. Not thread-safe: for one event loop."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        clock: Clock,
        on_change: Callable[[PodUID], None],
        heartbeat: Callable[[], None],
        metrics: RuntimeMetrics,
        period: float = 1.0,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._on_change = on_change
        self._period = period
        self._heartbeat = heartbeat
        self._random = random
        self._metrics = metrics
        self._relist_began: int | None = None
        """When the last list of all pods was requested, monotonic."""
        self._cache = PodCache()
        self._last_relist: int | None = None
        """When the newest successful list was requested, ns since the Unix epoch."""
        self._last_relist_monotonic = 0
        """The same, on the monotonic clock."""
        self._relist_failures = _failure_log("listing the pods of the runtime")
        self._watch_failures = _failure_log("watching the runtime for changes")
        self._hints = 0
        """Pods named by the runtime's change feed."""

    async def run(self) -> None:
        """Relist and watch the runtime until cancelled; failures are logged and retried."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._relist_loop())
            tasks.create_task(self._watch_loop())

    def pods(self) -> Mapping[PodUID, RuntimePod]:
        """Return a snapshot of all pods the runtime holds anything of."""
        return self._cache.pods()

    def find(self, uid: PodUID) -> RuntimePod | None:
        """Return the pod as last listed; None if the runtime holds nothing of it."""
        return self._cache.find(uid)

    @property
    def has_listed(self) -> bool:
        """Whether a list of all pods has succeeded; until then no pod counts as gone."""
        return self._last_relist is not None

    @property
    def age_seconds(self) -> float | None:
        """Seconds since all pods were last listed; None if they never were."""
        return None if self._last_relist is None else self._relist_age()

    @property
    def last_listed(self) -> int | None:
        """When the newest successful list was requested, ns since the Unix epoch, or None."""
        return self._last_relist

    def unhealthy_reason(self) -> str | None:
        """Return why the runtime is unhealthy, in upstream's words; None if it is healthy.

        Upstream: Healthy, pleg/generic.go, and runtimeErrors, runtime.go v1.36.4. Elapsed time is
        in whole seconds here, so that the Node does not change at every evaluation.
        """
        if self._last_relist is None:
            why = (
                f": {self._relist_failures.error}"
                if self._relist_failures.error is not None
                else ""
            )
            return f"PLEG is not healthy: pleg has yet to be successful{why}"
        seconds = int(self._relist_age())
        if seconds <= RELIST_THRESHOLD_SECONDS:
            return None
        return (
            f"PLEG is not healthy: pleg was last seen active {format_duration(seconds)} ago; "
            f"threshold is {format_duration(RELIST_THRESHOLD_SECONDS)}"
        )

    async def refresh(self, uid: PodUID, *, notify: bool = True) -> PodFacts:
        """List one pod now and return its facts; `PodFacts()` if the runtime holds nothing of it.

        `on_change` is called if the pod differs, unless `notify` is False (the caller is the
        listener itself). Raises RuntimeDownError.
        """
        request, began = self._cache.next_request(), self._clock.monotonic()
        try:
            pod = next(iter(await self._runtime.list_pods(uid)), None)
        finally:
            self._metrics.pod_relists.observe(self._seconds_since(began))
        if self._cache.apply_pod(request, uid, pod) and notify:
            self._on_change(uid)
        # The response to a later request may have arrived first.
        newest = self._cache.find(uid)
        return newest.facts if newest is not None else PodFacts()

    async def relist_once(self) -> None:
        """List all pods and report those that differ. After a failure the cache stays as it was."""
        request, now, began = self._cache.next_request(), self._clock.now(), self._clock.monotonic()
        if self._relist_began is not None:
            self._metrics.relist_intervals.observe(self._seconds_since(self._relist_began))
        self._relist_began = began
        try:
            pods = await self._runtime.list_pods()
        except Exception as error:  # noqa: BLE001 - runtimes are third-party code
            self._relist_failures.failed(error)
            return
        finally:
            self._metrics.relists.observe(self._seconds_since(began))
        self._relist_failures.recovered()
        self._last_relist, self._last_relist_monotonic = now, began
        for uid in self._cache.apply_list(request, pods):
            self._on_change(uid)

    async def watch_once(self, changes: AsyncIterator[PodUID]) -> None:
        """Refresh the next pod that the runtime's change feed names.

        Raises StopAsyncIteration at the end of the feed, and any exception that `changes` raises.
        """
        uid = await anext(changes)
        self._watch_failures.recovered()
        self._hints += 1
        # A failure here is harmless: the next relist sees the change.
        with suppress(RuntimeDownError):
            await self.refresh(uid)

    def _relist_age(self) -> float:
        return self._seconds_since(self._last_relist_monotonic)

    def _seconds_since(self, began: int) -> float:
        return (self._clock.monotonic() - began) / _SECOND

    async def _relist_loop(self) -> None:
        while True:
            self._heartbeat()
            await self.relist_once()
            await self._clock.wait(self._period)

    async def _watch_loop(self) -> None:
        backoff = Backoff(initial_seconds=self._period)
        while True:
            before = self._hints
            error = await self._watch_until_error()
            self._watch_failures.failed(error)
            if self._hints > before:
                backoff = backoff.reset()
            backoff = backoff.failed()
            await self._clock.wait(backoff.delay(self._random()))

    async def _watch_until_error(self) -> Exception:
        try:
            changes = self._runtime.changes()
            while True:
                await self.watch_once(changes)
        except StopAsyncIteration:
            return RuntimeDownError("the change feed ended; an adapter's changes() must never end")
        except Exception as error:  # noqa: BLE001 - runtimes are third-party code
            return error


def _failure_log(what: str) -> FailureLog:
    return FailureLog(logger, what, expected=RuntimeDownError)
