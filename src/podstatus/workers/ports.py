"""What the pod workers need from others: an observer that counts work, and a prober."""

from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus


class WorkObserver(Protocol):
    """Is told what was done. Must not wait."""

    def pod_sync_finished(self, operation: str, seconds: float) -> None:
        """A step of a pod was taken: `create`, `update`, `sync`, `kill` or `terminated`."""

    def worker_started(self, seconds: float) -> None:
        """The first step of a new pod begins, so long after it was first seen."""

    def pod_running(self, seconds: float) -> None:
        """The phase of a pod is Running, so long after it was first seen."""

    def container_start_attempted(self, container_type: str) -> None:
        """A container is about to be started: `container` or `init_container`."""

    def container_start_failed(self, container_type: str, reason: str) -> None:
        """It could not be started."""

    def pod_recreated(self, *, static: bool) -> None:
        """A pod has ended, and begins again under the same UID."""

    def orphan_found(self) -> None:
        """The runtime has something of a pod that nobody asks for."""


class NoopWorkObserver:
    """Nobody wants to know."""

    def pod_sync_finished(self, operation: str, seconds: float) -> None:
        """Nobody is told."""

    def worker_started(self, seconds: float) -> None:
        """Nobody is told."""

    def pod_running(self, seconds: float) -> None:
        """Nobody is told."""

    def container_start_attempted(self, container_type: str) -> None:
        """Nobody is told."""

    def container_start_failed(self, container_type: str, reason: str) -> None:
        """Nobody is told."""

    def pod_recreated(self, *, static: bool) -> None:
        """Nobody is told."""

    def orphan_found(self) -> None:
        """Nobody is told."""


class ProbeManager(Protocol):
    """Runs probes: `podstatus.probes.workers.ProbeWorkers` does."""

    def update_pod(self, pod: Pod, status: PodStatus, *, terminating: bool) -> None:
        """This status is told of the pod; `terminating`: it is to end, deleted or not."""

    def remove_pod(self, uid: PodUID) -> None:
        """Nothing of this pod runs any more."""

    def retain_only(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""


class NoopProbeManager:
    """Nobody checks: the runtime says itself what probes find, or there is nobody to ask."""

    def update_pod(self, pod: Pod, status: PodStatus, *, terminating: bool) -> None:
        """Nothing is checked."""

    def remove_pod(self, uid: PodUID) -> None:
        """Nothing was checked."""

    def retain_only(self, uids: set[PodUID]) -> None:
        """Nothing is known."""
