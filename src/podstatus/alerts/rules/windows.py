"""How often something happened to a pod within the last ten minutes.

What happens within ten seconds is remembered as one moment with a count, so that a pod takes
little room however wild it is; it is forgotten up to that much too early.
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
    """What happened to a pod within the window."""

    ready_changes: int = 0
    restarts: int = 0
    foreign_writes: int = 0


class _Bucket(msgspec.Struct):
    at: int
    ready_changes: int = 0
    restarts: int = 0
    foreign_writes: int = 0


class _ReadyState(msgspec.Struct, frozen=True, gc=False):
    """What a pod was like when it was last looked at."""

    ready: str
    since: Time
    restarts: int


_NO_COUNTS = WindowCounts()


class PodWindows:
    """Those of all pods."""

    def __init__(self) -> None:
        self._states: dict[PodUID, _ReadyState] = {}
        self._buckets: dict[PodUID, deque[_Bucket]] = {}
        self._first_seen: dict[PodUID, int] = {}
        """When each pod was first seen."""

    def update(self, pod: PodSummary, now: int) -> None:
        """The pod is like this now. At first sight nothing has happened to it."""
        condition = pod.condition("Ready")
        seen = (
            _ReadyState("False", UNSET_TIME, pod.restarts)
            if condition is None
            else _ReadyState(condition.status, condition.since, pod.restarts)
        )
        self._first_seen[pod.uid] = min(self._first_seen.get(pod.uid, now), now)
        before = self._states.get(pod.uid)
        self._states[pod.uid] = seen
        if before is None or before == seen:
            return
        changes = _ready_changes(before, seen)
        restarts = max(0, seen.restarts - before.restarts)
        if changes or restarts:
            moment = self._current_bucket(pod.uid, now)
            moment.ready_changes += changes
            moment.restarts += restarts

    def foreign_write(self, uid: PodUID, now: int) -> None:
        """Somebody else wrote what is ours of the pod's status."""
        self._current_bucket(uid, now).foreign_writes += 1

    def counts(self, uid: PodUID, now: int) -> WindowCounts:
        """What happened to a pod within the window that ends now."""
        if uid not in self._buckets:
            return _NO_COUNTS
        moments = self._active_buckets(uid, now)
        return WindowCounts(
            ready_changes=sum(moment.ready_changes for moment in moments),
            restarts=sum(moment.restarts for moment in moments),
            foreign_writes=sum(moment.foreign_writes for moment in moments),
        )

    def full_at(self, uid: PodUID) -> int:
        """When a pod has been, or will have been, seen for a whole window."""
        return self._first_seen[uid] + WINDOW_NANOS

    def next_change(self, uid: PodUID) -> int | None:
        """When the counts of a pod fall though nothing happens to it; None: they are 0."""
        moments = self._buckets.get(uid)
        return moments[0].at + WINDOW_NANOS if moments else None

    def step_clock(self, nanos: int) -> None:
        """The clock was set ahead by so much: what has happened is as long ago as before."""
        for uid in self._first_seen:
            self._first_seen[uid] += nanos
        for moments in self._buckets.values():
            for moment in moments:
                moment.at += nanos

    def forget(self, uid: PodUID) -> None:
        """The pod is not there any more."""
        self._states.pop(uid, None)
        self._first_seen.pop(uid, None)
        self._buckets.pop(uid, None)

    def _current_bucket(self, uid: PodUID, now: int) -> _Bucket:
        """The one that something belongs to which happens now."""
        self._buckets.setdefault(uid, deque())
        moments = self._active_buckets(uid, now)
        if not moments or now - moments[-1].at >= _BUCKET_NANOS:
            moments.append(_Bucket(now))
        self._buckets[uid] = moments
        return moments[-1]

    def _active_buckets(self, uid: PodUID, now: int) -> deque[_Bucket]:
        """The moments of a pod without those that are over."""
        moments = self._buckets[uid]
        while moments and moments[0].at + WINDOW_NANOS <= now:
            moments.popleft()
        for moment in moments:
            # The clock went back: what has happened has not yet to happen.
            moment.at = min(moment.at, now)
        if not moments:
            del self._buckets[uid]
        return moments


def _ready_changes(before: _ReadyState, seen: _ReadyState) -> int:
    """Pods are looked at now and then: one that is as before, but newly so, changed twice."""
    if before.ready != seen.ready:
        return 1
    return 2 if before.since and seen.since and before.since != seen.since else 0
