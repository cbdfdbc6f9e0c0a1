"""Counts of events of a pod within the last ten minutes.

Events are counted in buckets of ten seconds, which bounds the memory per pod; so an event may
expire up to ten seconds too early. Times are monotonic nanoseconds.
"""

from collections import deque

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.observe.summary.pod import PodSummary

_SECOND = 1_000_000_000
WINDOW_NANOS = 600 * _SECOND
_BUCKET_NANOS = 10 * _SECOND


class WindowCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Counts of a pod within the window."""

    ready_changes: int = 0
    restarts: int = 0
    foreign_writes: int = 0


class _Bucket(msgspec.Struct):
    at: int
    ready_changes: int = 0
    restarts: int = 0
    foreign_writes: int = 0


class _ReadyState(msgspec.Struct, frozen=True, gc=False):
    """Readiness and restarts of a pod at the previous update."""

    ready: str
    since: Time
    restarts: int


_NO_COUNTS = WindowCounts()


class PodWindows:
    def __init__(self) -> None:
        self._states: dict[PodUID, _ReadyState] = {}
        self._buckets: dict[PodUID, deque[_Bucket]] = {}
        self._first_seen: dict[PodUID, int] = {}
        """When each pod was first seen."""

    def __len__(self) -> int:
        """Return the number of retained states and buckets, of all pods."""
        return len(self._states) + sum(map(len, self._buckets.values()))

    def update(self, pod: PodSummary, now: int) -> None:
        """Count what changed since the last update. The first update of a pod counts nothing."""
        condition = pod.condition("Ready")
        current = (
            _ReadyState("False", UNSET_TIME, pod.restarts)
            if condition is None
            else _ReadyState(condition.status, condition.since, pod.restarts)
        )
        self._first_seen.setdefault(pod.uid, now)
        before = self._states.get(pod.uid)
        self._states[pod.uid] = current
        if before is None or before == current:
            return
        changes = _ready_changes(before, current)
        restarts = max(0, current.restarts - before.restarts)
        if changes or restarts:
            bucket = self._current_bucket(pod.uid, now)
            bucket.ready_changes += changes
            bucket.restarts += restarts

    def foreign_write(self, uid: PodUID, now: int) -> None:
        """Count a write to the pod's status by another client."""
        self._current_bucket(uid, now).foreign_writes += 1

    def counts(self, uid: PodUID, now: int) -> WindowCounts:
        """Return the counts of a pod within the window that ends at `now`."""
        if uid not in self._buckets:
            return _NO_COUNTS
        buckets = self._active_buckets(uid, now)
        return WindowCounts(
            ready_changes=sum(bucket.ready_changes for bucket in buckets),
            restarts=sum(bucket.restarts for bucket in buckets),
            foreign_writes=sum(bucket.foreign_writes for bucket in buckets),
        )

    def full_at(self, uid: PodUID) -> int:
        """Return when a pod has been watched for a whole window."""
        return self._first_seen[uid] + WINDOW_NANOS

    def next_change(self, uid: PodUID) -> int | None:
        """Return when the counts of a pod decrease next by time alone; None: they are 0."""
        buckets = self._buckets.get(uid)
        return buckets[0].at + WINDOW_NANOS if buckets else None

    def forget(self, uid: PodUID) -> None:
        self._states.pop(uid, None)
        self._first_seen.pop(uid, None)
        self._buckets.pop(uid, None)

    def _current_bucket(self, uid: PodUID, now: int) -> _Bucket:
        """Return the bucket for an event at `now`."""
        self._buckets.setdefault(uid, deque())
        buckets = self._active_buckets(uid, now)
        if not buckets or now - buckets[-1].at >= _BUCKET_NANOS:
            buckets.append(_Bucket(now))
        self._buckets[uid] = buckets
        return buckets[-1]

    def _active_buckets(self, uid: PodUID, now: int) -> deque[_Bucket]:
        """Return the buckets of a pod within the window."""
        buckets = self._buckets[uid]
        while buckets and buckets[0].at + WINDOW_NANOS <= now:
            buckets.popleft()
        if not buckets:
            del self._buckets[uid]
        return buckets


def _ready_changes(before: _ReadyState, current: _ReadyState) -> int:
    """Updates are sampled: the same status with a new transition time means two changes."""
    if before.ready != current.ready:
        return 1
    return 2 if before.since and current.since and before.since != current.since else 0
