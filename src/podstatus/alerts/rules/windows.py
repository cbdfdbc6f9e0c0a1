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
WINDOW = 600 * _SECOND
_MOMENT = 10 * _SECOND


class WindowCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What happened to a pod within the window."""

    ready_changes: int = 0
    restarts: int = 0
    foreign_writes: int = 0


class _Moment(msgspec.Struct):
    at: int
    ready_changes: int = 0
    restarts: int = 0
    foreign_writes: int = 0


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """What a pod was like when it was last looked at."""

    ready: str
    since: Time
    restarts: int


_NOTHING = WindowCounts()


class Windows:
    """Those of all pods."""

    def __init__(self) -> None:
        self._seen: dict[PodUID, _Seen] = {}
        self._moments: dict[PodUID, deque[_Moment]] = {}
        self._first: dict[PodUID, int] = {}
        """When each pod was first seen."""

    def see(self, pod: PodSummary, now: int) -> None:
        """The pod is like this now. At first sight nothing has happened to it."""
        condition = pod.condition("Ready")
        seen = (
            _Seen("False", UNSET_TIME, pod.restarts)
            if condition is None
            else _Seen(condition.status, condition.since, pod.restarts)
        )
        self._first[pod.uid] = min(self._first.get(pod.uid, now), now)
        before = self._seen.get(pod.uid)
        self._seen[pod.uid] = seen
        if before is None or before == seen:
            return
        changes = _ready_changes(before, seen)
        restarts = max(0, seen.restarts - before.restarts)
        if changes or restarts:
            moment = self._moment(pod.uid, now)
            moment.ready_changes += changes
            moment.restarts += restarts

    def foreign_write(self, uid: PodUID, now: int) -> None:
        """Somebody else wrote what is ours of the pod's status."""
        self._moment(uid, now).foreign_writes += 1

    def counts(self, uid: PodUID, now: int) -> WindowCounts:
        """What happened to a pod within the window that ends now."""
        if uid not in self._moments:
            return _NOTHING
        moments = self._kept(uid, now)
        return WindowCounts(
            ready_changes=sum(moment.ready_changes for moment in moments),
            restarts=sum(moment.restarts for moment in moments),
            foreign_writes=sum(moment.foreign_writes for moment in moments),
        )

    def whole(self, uid: PodUID) -> int:
        """When a pod has been, or will have been, seen for a whole window."""
        return self._first[uid] + WINDOW

    def moves(self, uid: PodUID) -> int | None:
        """When the counts of a pod fall though nothing happens to it; None: they are 0."""
        moments = self._moments.get(uid)
        return moments[0].at + WINDOW if moments else None

    def set_ahead(self, nanos: int) -> None:
        """The clock was set ahead by so much: what has happened is as long ago as before."""
        for uid in self._first:
            self._first[uid] += nanos
        for moments in self._moments.values():
            for moment in moments:
                moment.at += nanos

    def forget(self, uid: PodUID) -> None:
        """The pod is not there any more."""
        self._seen.pop(uid, None)
        self._first.pop(uid, None)
        self._moments.pop(uid, None)

    def _moment(self, uid: PodUID, now: int) -> _Moment:
        """The one that something belongs to which happens now."""
        self._moments.setdefault(uid, deque())
        moments = self._kept(uid, now)
        if not moments or now - moments[-1].at >= _MOMENT:
            moments.append(_Moment(now))
        self._moments[uid] = moments
        return moments[-1]

    def _kept(self, uid: PodUID, now: int) -> deque[_Moment]:
        """The moments of a pod without those that are over."""
        moments = self._moments[uid]
        while moments and moments[0].at + WINDOW <= now:
            moments.popleft()
        for moment in moments:
            # The clock went back: what has happened has not yet to happen.
            moment.at = min(moment.at, now)
        if not moments:
            del self._moments[uid]
        return moments


def _ready_changes(before: _Seen, seen: _Seen) -> int:
    """Pods are looked at now and then: one that is as before, but newly so, changed twice."""
    if before.ready != seen.ready:
        return 1
    return 2 if before.since and seen.since and before.since != seen.since else 0
