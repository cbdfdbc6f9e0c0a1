"""What somebody who watches some pods only is told of a change."""

from enum import Enum

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import PodTombstone
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.filters import PodFilter


class WatchAction(Enum):
    """What to tell."""

    POD = "pod"
    DELETED = "deleted"
    NOTHING = "nothing"


class PodSelection:
    """Which pods a client knows, as far as that is not plain from the filter.

    A pod that does not match any more is gone for the client, if it may know it: it was told of it
    here, or perhaps before it came back.
    """

    def __init__(self, filter_: PodFilter, *, resumed: bool) -> None:
        self._filter = filter_
        self._resumed = resumed
        self._can_change = filter_ != PodFilter(namespace=filter_.namespace)
        """Whether a pod can be selected at one time and not at another."""
        self._client_has: dict[PodUID, bool] = {}
        """Whether the client has a pod. As many as there are pods; none if nothing can change."""

    def on_pod(self, pod: PodSummary, now: Time) -> WatchAction:
        """The pod is like this."""
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
        """The pod is not there any more."""
        if self._filter.namespace not in ("", deleted.namespace):
            return WatchAction.NOTHING
        has = not self._can_change or self._client_has.pop(deleted.uid, self._resumed)
        return WatchAction.DELETED if has else WatchAction.NOTHING
