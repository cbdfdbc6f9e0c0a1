"""The pods of a simulated runtime, who is told what happens to them, and time that passes.

Nothing in here waits. What was told is kept in the folder before anybody can see it.
"""

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.simulated.model.addresses import AddressPool
from podstatus.runtime.simulated.model.pod_record import (
    NO_LISTED_ATTEMPTS,
    ListedAttempt,
    SimulatedPodRecord,
    next_change,
    next_exit,
    runtime_pod,
)
from podstatus.runtime.simulated.model.schedule import PodSchedule
from podstatus.runtime.simulated.store import SimulatedPodStore
from podstatus.runtime.simulated.wakeup import TimedWakeup
from podstatus.runtime.simulated.watchers import PodChangeSubscription, ProbeResultSubscription


class _ListedPod(msgspec.Struct, frozen=True):
    """What is listed of a pod, and until when that is right."""

    pod: RuntimePod
    attempts: Mapping[str, ListedAttempt]
    valid_until: int | None
    stale: bool = False
    """Whether the pod has changed since."""


class SimulationState:
    """What there is. For one event loop."""

    def __init__(self, clock: Clock, records: SimulatedPodStore, addresses: AddressPool) -> None:
        self._clock = clock
        self._records = records
        self._addresses = addresses
        self._pods: dict[PodUID, SimulatedPodRecord] = {}
        self._listed: dict[PodUID, _ListedPod] = {}
        self._next_exits: dict[PodUID, int | None] = {}
        """When the next container of a pod ends, of which nobody was told yet."""
        self._schedule = PodSchedule()
        self._changes: weakref.WeakSet[PodChangeSubscription] = weakref.WeakSet()
        self._results: weakref.WeakSet[ProbeResultSubscription] = weakref.WeakSet()
        self._wakeups: dict[PodUID, set[TimedWakeup]] = {}
        for record in records.read():
            self._apply(record)

    def now(self) -> int:
        """The time, in nanoseconds since the Unix epoch."""
        return self._clock.now()

    def record(self, uid: PodUID) -> SimulatedPodRecord | None:
        """What is kept of this pod."""
        return self._pods.get(uid)

    def records(self) -> list[SimulatedPodRecord]:
        """What is kept of all pods."""
        return list(self._pods.values())

    def runtime_pod(self, uid: PodUID) -> RuntimePod | None:
        """What is listed of this pod now: the same object as long as nothing changes."""
        found, now = self._listed.get(uid), self.now()
        if (
            found is not None
            and not found.stale
            and (found.valid_until is None or now < found.valid_until)
        ):
            return found.pod
        record = self._pods.get(uid)
        if record is None:
            return None
        pod, attempts = runtime_pod(
            record, now, NO_LISTED_ATTEMPTS if found is None else found.attempts
        )
        self._listed[uid] = _ListedPod(pod, attempts, next_exit(record, now))
        return pod

    def put(self, record: SimulatedPodRecord) -> None:
        """Make this what there is of a pod, and tell everybody. Raises RuntimeDownError."""
        self._records.write(record)
        self._apply(record)
        self._notify(record.uid)

    def remove(self, uid: PodUID) -> None:
        """Let go of a pod, and tell everybody. Raises RuntimeDownError."""
        self._records.remove(uid)
        gone = self._pods.pop(uid, None)
        if gone is None:
            return
        self._release_address(gone, None)
        self._listed.pop(uid, None)
        self._next_exits.pop(uid, None)
        self._schedule.reschedule(uid, None)
        self._notify(uid)

    def advance(self) -> int | None:
        """Tell everybody what has happened until now; when the next thing does."""
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
        """A new watcher of pods."""
        watcher = PodChangeSubscription(self, self._clock)
        self._changes.add(watcher)
        return watcher

    def probe_results(self) -> ProbeResultSubscription:
        """A new watcher of probes."""
        watcher = ProbeResultSubscription(self, self._clock, self._pods, self.now)
        self._results.add(watcher)
        return watcher

    @contextmanager
    def wakeup(self, uid: PodUID) -> Iterator[TimedWakeup]:
        """Something that rings whenever a pod is told something."""
        alarm = TimedWakeup(self._clock)
        alarms = self._wakeups.setdefault(uid, set())
        alarms.add(alarm)
        try:
            yield alarm
        finally:
            alarms.discard(alarm)
            if not alarms:
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
        self._schedule.reschedule(record.uid, next_change(record, now, end))

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
        for alarm in self._wakeups.get(uid, ()):
            alarm.wake()
