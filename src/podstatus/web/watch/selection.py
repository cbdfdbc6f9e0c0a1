"""What somebody who watches some pods only is told of a change."""

from enum import Enum

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import Gone
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.filters import PodFilter


class Tell(Enum):
    """What to tell."""

    POD = "pod"
    GONE = "gone"
    NOTHING = "nothing"


class Selection:
    """Which pods a client knows, as far as that is not plain from the filter.

    A pod that does not match any more is gone for the client, if it may know it: it was told of it
    here, or perhaps before it came back.
    """

    def __init__(self, wanted: PodFilter, *, resumed: bool) -> None:
        self._wanted = wanted
        self._resumed = resumed
        self._changes = wanted != PodFilter(namespace=wanted.namespace)
        """Whether a pod can be selected at one time and not at another."""
        self._told: dict[PodUID, bool] = {}
        """Whether the client has a pod. As many as there are pods; none if nothing can change."""

    def pod(self, pod: PodSummary, now: Time) -> Tell:
        """The pod is like this."""
        if self._wanted.namespace not in ("", pod.namespace):
            return Tell.NOTHING
        if not self._changes:
            return Tell.POD
        has = self._told.get(pod.uid, self._resumed)
        matches = self._told[pod.uid] = self._wanted.matches(pod, now)
        if matches:
            return Tell.POD
        return Tell.GONE if has else Tell.NOTHING

    def gone(self, gone: Gone) -> Tell:
        """The pod is not there any more."""
        if self._wanted.namespace not in ("", gone.namespace):
            return Tell.NOTHING
        has = not self._changes or self._told.pop(gone.uid, self._resumed)
        return Tell.GONE if has else Tell.NOTHING
