"""Change and probe result feeds of the simulated runtime.

No task drives the simulation: a waiting subscriber wakes at the time of the next change and
advances the simulation for all other subscribers, too.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.model.container_timeline import probe_outcomes
from podstatus.runtime.simulated.model.pod_record import SimulatedPodRecord


class TimedWakeup:
    """Wakes one waiter, which then checks for itself what has changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake the waiter, now or at its next wait."""
        self._event.set()

    async def wait(self, until: int | None = None) -> None:
        """Wait until `until` (ns since the Unix epoch; None: no deadline) or until `wake` is
        called.
        """
        seconds = None if until is None else (until - self._clock.now()) / 1e9
        await wait_event_or_timeout(self._event, self._clock, seconds)
        self._event.clear()


class SimulationPort(Protocol):
    """What subscriptions need of the runtime."""

    def advance(self) -> int | None:
        """Notify all subscriptions of changes up to now; return when the next change is due."""

    def record(self, uid: PodUID) -> SimulatedPodRecord | None:
        """Return the record of this pod, or None."""


class PodChangeSubscription(AsyncIterator[PodUID]):
    """Yields the UIDs of pods whose facts changed; repeated changes of a pod are coalesced."""

    def __init__(self, runtime: SimulationPort, clock: Clock) -> None:
        self._runtime = runtime
        self._wakeup = TimedWakeup(clock)
        self._pods: dict[PodUID, None] = {}

    def notify(self, uid: PodUID) -> None:
        """Queue this pod: its facts have changed."""
        self._pods[uid] = None
        self._wakeup.wake()

    async def __anext__(self) -> PodUID:
        while True:
            next_moment = self._runtime.advance()
            if self._pods:
                uid = next(iter(self._pods))
                del self._pods[uid]
                return uid
            await self._wakeup.wait(next_moment)


class ProbeResultSubscription(AsyncIterator[ProbeResult]):
    """Yields probe results: once per container at first, then on each change."""

    def __init__(
        self, runtime: SimulationPort, clock: Clock, pods: Iterable[PodUID], now: Callable[[], int]
    ) -> None:
        self._runtime = runtime
        self._wakeup = TimedWakeup(clock)
        self._now = now
        self._pods = dict.fromkeys(pods)
        self._last_results: dict[PodUID, dict[tuple[str, str], bool]] = {}
        self._results: deque[ProbeResult] = deque()

    def notify(self, uid: PodUID) -> None:
        """Queue this pod: its probe results may have changed."""
        self._pods[uid] = None
        self._wakeup.wake()

    async def __anext__(self) -> ProbeResult:
        while True:
            next_moment = self._runtime.advance()
            for uid in self._pods:
                self._poll_pod(uid)
            self._pods.clear()
            if self._results:
                return self._results.popleft()
            await self._wakeup.wait(next_moment)

    def _poll_pod(self, uid: PodUID) -> None:
        now, record = self._now(), self._runtime.record(uid)
        before = self._last_results.pop(uid, {})
        results: dict[tuple[str, str], bool] = {}
        for attempt in record.attempts if record is not None else ():
            if not attempt.probes:
                continue
            for probe, success in probe_outcomes(attempt, now)[0].items():
                results[attempt.id, probe] = success
                if before.get((attempt.id, probe)) is not success:
                    self._results.append(
                        ProbeResult(
                            uid=uid,
                            container=attempt.name,
                            container_id=attempt.id,
                            probe=probe,
                            success=success,
                        )
                    )
        if results:
            self._last_results[uid] = results
