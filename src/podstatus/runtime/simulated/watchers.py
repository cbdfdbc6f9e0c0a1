"""Those who are told what happens in a simulated runtime.

There is no task that drives it: whoever waits for news wakes at the next moment at which
something happens, and sees to it that all the others are told, too.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.model.container import probe_outcomes
from podstatus.runtime.simulated.model.pod_record import SimulatedPodRecord
from podstatus.runtime.simulated.wakeup import TimedWakeup


class SimulationPort(Protocol):
    """What watchers need of the runtime."""

    def advance(self) -> int | None:
        """Tell all watchers what has happened until now; when the next thing does."""

    def record(self, uid: PodUID) -> SimulatedPodRecord | None:
        """What is kept of this pod."""


class PodChangeSubscription(AsyncIterator[PodUID]):
    """The pods of which the facts are other ones; many changes of a pod count as one."""

    def __init__(self, runtime: SimulationPort, clock: Clock) -> None:
        self._runtime = runtime
        self._wakeup = TimedWakeup(clock)
        self._pods: dict[PodUID, None] = {}

    def notify(self, uid: PodUID) -> None:
        """The facts of this pod have changed."""
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
    """What probes say: of each container once in the beginning, and then when it changes."""

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
        """Something about this pod may be otherwise."""
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
        said: dict[tuple[str, str], bool] = {}
        for attempt in record.attempts if record is not None else ():
            if not attempt.probes:
                continue
            for probe, success in probe_outcomes(attempt, now)[0].items():
                said[attempt.id, probe] = success
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
        if said:
            self._last_results[uid] = said
