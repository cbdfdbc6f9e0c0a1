"""The pods of a simulated runtime, their subscriptions, and the schedule of their changes.

Nothing here blocks. A change is written to the store before it becomes visible. No task drives the
simulation: a waiting subscriber wakes at the time of the next change and advances the simulation
for all other subscribers, too.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.base.timer_heap import TimerHeap
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import ProbeResult, RuntimePod
from podstatus.runtime.simulated.model.addresses import AddressPool
from podstatus.runtime.simulated.model.container_timeline import probe_outcomes
from podstatus.runtime.simulated.model.pod_record import (
    NO_LISTED_ATTEMPTS,
    ListedAttempt,
    SimulatedPodRecord,
    next_change,
    next_exit,
    runtime_pod,
)
from podstatus.runtime.simulated.store import SimulatedPodStore


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


class PodChangeSubscription(AsyncIterator[PodUID]):
    """Yields the UIDs of pods whose facts changed; repeated changes of a pod are coalesced."""

    def __init__(self, state: "SimulationState", clock: Clock) -> None:
        self._state = state
        self._wakeup = TimedWakeup(clock)
        self._pods: dict[PodUID, None] = {}

    def notify(self, uid: PodUID) -> None:
        """Queue this pod: its facts have changed."""
        self._pods[uid] = None
        self._wakeup.wake()

    async def __anext__(self) -> PodUID:
        while True:
            next_moment = self._state.advance()
            if self._pods:
                uid = next(iter(self._pods))
                del self._pods[uid]
                return uid
            await self._wakeup.wait(next_moment)


class ProbeResultSubscription(AsyncIterator[ProbeResult]):
    """Yields probe results: once per container at first, then on each change."""

    def __init__(self, state: "SimulationState", clock: Clock, pods: Iterable[PodUID]) -> None:
        self._state = state
        self._wakeup = TimedWakeup(clock)
        self._pods = dict.fromkeys(pods)
        self._last_results: dict[PodUID, dict[tuple[str, str], bool]] = {}
        self._results: deque[ProbeResult] = deque()

    def notify(self, uid: PodUID) -> None:
        """Queue this pod: its probe results may have changed."""
        self._pods[uid] = None
        self._wakeup.wake()

    async def __anext__(self) -> ProbeResult:
        while True:
            next_moment = self._state.advance()
            for uid in self._pods:
                self._poll_pod(uid)
            self._pods.clear()
            if self._results:
                return self._results.popleft()
            await self._wakeup.wait(next_moment)

    def _poll_pod(self, uid: PodUID) -> None:
        now, record = self._state.now(), self._state.record(uid)
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


class _ListedPod(msgspec.Struct, frozen=True):
    """A listed pod, and until when the listing is valid."""

    pod: RuntimePod
    attempts: Mapping[str, ListedAttempt]
    valid_until: int | None
    stale: bool = False
    """Whether the record has changed since."""


class SimulationState:
    """State of all pods. Not thread-safe: for one event loop."""

    def __init__(self, clock: Clock, records: SimulatedPodStore, addresses: AddressPool) -> None:
        self._clock = clock
        self._records = records
        self._addresses = addresses
        self._pods: dict[PodUID, SimulatedPodRecord] = {}
        self._listed: dict[PodUID, _ListedPod] = {}
        self._next_exits: dict[PodUID, int | None] = {}
        """When the next container of a pod ends; subscribers are notified then."""
        self._schedule: TimerHeap[PodUID] = TimerHeap()
        self._changes: weakref.WeakSet[PodChangeSubscription] = weakref.WeakSet()
        self._results: weakref.WeakSet[ProbeResultSubscription] = weakref.WeakSet()
        self._wakeups: dict[PodUID, set[TimedWakeup]] = {}
        for record in records.read():
            self._apply(record)

    def now(self) -> int:
        """Return the current time, ns since the Unix epoch."""
        return self._clock.now()

    def record(self, uid: PodUID) -> SimulatedPodRecord | None:
        return self._pods.get(uid)

    def records(self) -> list[SimulatedPodRecord]:
        return list(self._pods.values())

    def runtime_pod(self, uid: PodUID) -> RuntimePod | None:
        """Return the listed pod at this time; the same object while nothing changes."""
        listed, now = self._listed.get(uid), self.now()
        if (
            listed is not None
            and not listed.stale
            and (listed.valid_until is None or now < listed.valid_until)
        ):
            return listed.pod
        record = self._pods.get(uid)
        if record is None:
            return None
        pod, attempts = runtime_pod(
            record, now, NO_LISTED_ATTEMPTS if listed is None else listed.attempts
        )
        self._listed[uid] = _ListedPod(pod, attempts, next_exit(record, now))
        return pod

    def put(self, record: SimulatedPodRecord) -> None:
        """Store the record and notify all subscribers. Raises RuntimeDownError."""
        self._records.write(record)
        self._apply(record)
        self._notify(record.uid)

    def remove(self, uid: PodUID) -> None:
        """Remove the pod and notify all subscribers. Raises RuntimeDownError."""
        self._records.remove(uid)
        removed = self._pods.pop(uid, None)
        if removed is None:
            return
        self._release_address(removed, None)
        self._listed.pop(uid, None)
        self._next_exits.pop(uid, None)
        self._schedule.set(uid, None)
        self._notify(uid)

    def advance(self) -> int | None:
        """Notify all subscriptions of changes up to now; return when the next change is due."""
        now = self.now()
        for uid in self._schedule.pop_due(now):
            record, end = self._pods[uid], self._next_exits[uid]
            self._schedule_next(record, now)
            if end is not None and end <= now:
                self._notify(uid)
            else:
                for results in self._results:
                    results.notify(uid)
        return self._schedule.next_due()

    def changes(self) -> PodChangeSubscription:
        subscription = PodChangeSubscription(self, self._clock)
        self._changes.add(subscription)
        return subscription

    def probe_results(self) -> ProbeResultSubscription:
        subscription = ProbeResultSubscription(self, self._clock, self._pods)
        self._results.add(subscription)
        return subscription

    @contextmanager
    def wakeup(self, uid: PodUID) -> Iterator[TimedWakeup]:
        """Provide a wake-up that fires whenever the pod's record is stored or removed."""
        wakeup = TimedWakeup(self._clock)
        wakeups = self._wakeups.setdefault(uid, set())
        wakeups.add(wakeup)
        try:
            yield wakeup
        finally:
            wakeups.discard(wakeup)
            if not wakeups:
                self._wakeups.pop(uid, None)

    def _apply(self, record: SimulatedPodRecord) -> None:
        self._release_address(self._pods.get(record.uid), record)
        if record.sandbox is not None and record.sandbox.ip is not None:
            self._addresses.reserve(record.sandbox.ip)
        self._pods[record.uid] = record
        if (listed := self._listed.get(record.uid)) is not None:
            self._listed[record.uid] = structs.replace(listed, stale=True)
        self._schedule_next(record, self.now())

    def _schedule_next(self, record: SimulatedPodRecord, now: int) -> None:
        end = next_exit(record, now)
        self._next_exits[record.uid] = end
        self._schedule.set(record.uid, next_change(record, now, end))

    def _release_address(
        self, old: SimulatedPodRecord | None, new: SimulatedPodRecord | None
    ) -> None:
        had = old.sandbox.ip if old is not None and old.sandbox is not None else None
        has = new.sandbox.ip if new is not None and new.sandbox is not None else None
        if had is not None and had != has:
            self._addresses.release(had)

    def _notify(self, uid: PodUID) -> None:
        for changes in self._changes:
            changes.notify(uid)
        for results in self._results:
            results.notify(uid)
        for wakeup in self._wakeups.get(uid, ()):
            wakeup.wake()
