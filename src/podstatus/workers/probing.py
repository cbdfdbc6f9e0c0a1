"""Who checks containers: what the steps of a pod's life tell it."""

from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus


class Probing(Protocol):
    """Runs probes: `podstatus.probes.workers.ProbeWorkers` does."""

    def watch(self, pod: Pod, status: PodStatus, *, ending: bool) -> None:
        """This status is told of the pod; `ending`: it is to end, deleted or not."""

    def end(self, uid: PodUID) -> None:
        """Nothing of this pod runs any more."""

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""


class NoProbing:
    """Nobody checks: the runtime says itself what probes find, or there is nobody to ask."""

    def watch(self, pod: Pod, status: PodStatus, *, ending: bool) -> None:
        """Nothing is checked."""

    def end(self, uid: PodUID) -> None:
        """Nothing was checked."""

    def keep(self, uids: set[PodUID]) -> None:
        """Nothing is known."""
