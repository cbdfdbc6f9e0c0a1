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
from podstatus.runtime.simulated.model.addresses import Addresses
from podstatus.runtime.simulated.model.pod_record import (
    NOTHING_SHOWN,
    PodRecord,
    Shown,
    next_end,
    next_moment,
    runtime_pod,
)
from podstatus.runtime.simulated.model.schedule import Moments
from podstatus.runtime.simulated.store import Records
from podstatus.runtime.simulated.wakeup import Alarm
from podstatus.runtime.simulated.watchers import PodsToLookAt, ProbeResults


class _Listed(msgspec.Struct, frozen=True):
    """What is listed of a pod, and until when that is right."""

    pod: RuntimePod
    attempts: Mapping[str, Shown]
    until: int | None
    stale: bool = False
    """Whether the pod has changed since."""


class World:
    """What there is. For one event loop."""

    def __init__(self, clock: Clock, records: Records, addresses: Addresses) -> None:
        self._clock = clock
        self._records = records
        self._addresses = addresses
        self._pods: dict[PodUID, PodRecord] = {}
        self._listed: dict[PodUID, _Listed] = {}
        self._ends: dict[PodUID, int | None] = {}
        """When the next container of a pod ends, of which nobody was told yet."""
        self._moments = Moments()
        self._changes: weakref.WeakSet[PodsToLookAt] = weakref.WeakSet()
        self._results: weakref.WeakSet[ProbeResults] = weakref.WeakSet()
        self._alarms: dict[PodUID, set[Alarm]] = {}
        for record in records.read():
            self._take_over(record)

    def now(self) -> int:
        """The time, in nanoseconds since the Unix epoch."""
        return self._clock.now()

    def record(self, uid: PodUID) -> PodRecord | None:
        """What is kept of this pod."""
        return self._pods.get(uid)

    def records(self) -> list[PodRecord]:
        """What is kept of all pods."""
        return list(self._pods.values())

    def listed(self, uid: PodUID) -> RuntimePod | None:
        """What is listed of this pod now: the same object as long as nothing changes."""
        found, now = self._listed.get(uid), self.now()
        if found is not None and not found.stale and (found.until is None or now < found.until):
            return found.pod
        record = self._pods.get(uid)
        if record is None:
            return None
        pod, attempts = runtime_pod(record, now, NOTHING_SHOWN if found is None else found.attempts)
        self._listed[uid] = _Listed(pod, attempts, next_end(record, now))
        return pod

    def keep(self, record: PodRecord) -> None:
        """Make this what there is of a pod, and tell everybody. Raises RuntimeDownError."""
        self._records.write(record)
        self._take_over(record)
        self._tell(record.uid)

    def forget(self, uid: PodUID) -> None:
        """Let go of a pod, and tell everybody. Raises RuntimeDownError."""
        self._records.remove(uid)
        gone = self._pods.pop(uid, None)
        if gone is None:
            return
        self._free_addresses(gone, None)
        self._listed.pop(uid, None)
        self._ends.pop(uid, None)
        self._moments.put(uid, None)
        self._tell(uid)

    def pass_time(self) -> int | None:
        """Tell everybody what has happened until now; when the next thing does."""
        now = self.now()
        for uid in self._moments.take_due(now):
            record, end = self._pods[uid], self._ends[uid]
            self._expect(record, now)
            if end is not None and end <= now:
                self._tell(uid)
            else:
                for results in self._results:
                    results.tell(uid)
        return self._moments.next()

    def changes(self) -> PodsToLookAt:
        """A new watcher of pods."""
        watcher = PodsToLookAt(self, self._clock)
        self._changes.add(watcher)
        return watcher

    def probe_results(self) -> ProbeResults:
        """A new watcher of probes."""
        watcher = ProbeResults(self, self._clock, self._pods, self.now)
        self._results.add(watcher)
        return watcher

    @contextmanager
    def alarm(self, uid: PodUID) -> Iterator[Alarm]:
        """Something that rings whenever a pod is told something."""
        alarm = Alarm(self._clock)
        alarms = self._alarms.setdefault(uid, set())
        alarms.add(alarm)
        try:
            yield alarm
        finally:
            alarms.discard(alarm)
            if not alarms:
                self._alarms.pop(uid, None)

    def _take_over(self, record: PodRecord) -> None:
        self._free_addresses(self._pods.get(record.uid), record)
        if record.sandbox is not None and record.sandbox.ip is not None:
            self._addresses.claim(record.sandbox.ip)
        self._pods[record.uid] = record
        if (listed := self._listed.get(record.uid)) is not None:
            self._listed[record.uid] = structs.replace(listed, stale=True)
        self._expect(record, self.now())

    def _expect(self, record: PodRecord, now: int) -> None:
        end = next_end(record, now)
        self._ends[record.uid] = end
        self._moments.put(record.uid, next_moment(record, now, end))

    def _free_addresses(self, old: PodRecord | None, new: PodRecord | None) -> None:
        had = old.sandbox.ip if old is not None and old.sandbox is not None else None
        has = new.sandbox.ip if new is not None and new.sandbox is not None else None
        if had is not None and had != has:
            self._addresses.give_back(had)

    def _tell(self, uid: PodUID) -> None:
        for changes in self._changes:
            changes.tell(uid)
        for results in self._results:
            results.tell(uid)
        for alarm in self._alarms.get(uid, ()):
            alarm.ring()
