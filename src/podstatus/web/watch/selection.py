"""Decide which event a change causes for a client with a filter."""

from enum import Enum

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import PodTombstone
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.filters import PodFilter


class WatchAction(Enum):
    """The event to send to a client."""

    POD = "pod"
    DELETED = "deleted"
    NOTHING = "nothing"


class PodSelection:
    """Tracks which pods a client has, where the filter alone does not tell.

    A pod that stops matching is reported as deleted if the client may have it: it was sent on this
    connection, or perhaps on an earlier one that this one resumes.
    """

    def __init__(self, filter_: PodFilter, *, resumed: bool) -> None:
        self._filter = filter_
        self._resumed = resumed
        self._can_change = filter_ != PodFilter(namespace=filter_.namespace)
        """Whether a pod can start or stop matching."""
        self._client_has: dict[PodUID, bool] = {}
        """By pod; empty if the filter cannot change its result."""

    def on_pod(self, pod: PodSummary, now: Time) -> WatchAction:
        """The event for a pod in a new state."""
        if self._filter.namespace not in ("", pod.namespace):
            return WatchAction.NOTHING
        if not self._can_change:
            return WatchAction.POD
        has = self._client_has.get(pod.uid, self._resumed)
        matches = self._client_has[pod.uid] = self._filter.matches(pod, now)
        if matches:
            return WatchAction.POD
        return WatchAction.DELETED if has else WatchAction.NOTHING

    def on_deleted(self, deleted: PodTombstone) -> WatchAction:
        if self._filter.namespace not in ("", deleted.namespace):
            return WatchAction.NOTHING
        has = not self._can_change or self._client_has.pop(deleted.uid, self._resumed)
        return WatchAction.DELETED if has else WatchAction.NOTHING
