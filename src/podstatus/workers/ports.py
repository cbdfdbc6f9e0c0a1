"""What the pod workers need from others: an observer that counts work, and a prober."""

from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus


class WorkObserver(Protocol):
    """Is told what was done. Must not wait."""

    def pod_step(self, operation: str, seconds: float) -> None:
        """A step of a pod was taken: `create`, `update`, `sync`, `kill` or `terminated`."""

    def worker_starts(self, seconds: float) -> None:
        """The first step of a new pod begins, so long after it was first seen."""

    def pod_runs(self, seconds: float) -> None:
        """The phase of a pod is Running, so long after it was first seen."""

    def container_starts(self, container_type: str) -> None:
        """A container is about to be started: `container` or `init_container`."""

    def container_did_not_start(self, container_type: str, reason: str) -> None:
        """It could not be started."""

    def pod_returned(self, *, static: bool) -> None:
        """A pod has ended, and begins again under the same UID."""

    def orphan_found(self) -> None:
        """The runtime has something of a pod that nobody asks for."""


class NoObserver:
    """Nobody wants to know."""

    def pod_step(self, operation: str, seconds: float) -> None:
        """Nobody is told."""

    def worker_starts(self, seconds: float) -> None:
        """Nobody is told."""

    def pod_runs(self, seconds: float) -> None:
        """Nobody is told."""

    def container_starts(self, container_type: str) -> None:
        """Nobody is told."""

    def container_did_not_start(self, container_type: str, reason: str) -> None:
        """Nobody is told."""

    def pod_returned(self, *, static: bool) -> None:
        """Nobody is told."""

    def orphan_found(self) -> None:
        """Nobody is told."""


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
