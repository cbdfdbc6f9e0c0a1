"""Ports of the pod workers: an observer for metrics, and the prober."""

from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus


class WorkObserver(Protocol):
    """Receives progress for metrics. Implementations must not block."""

    def pod_sync_finished(self, operation: str, seconds: float) -> None:
        """A sync step is done: `create`, `update`, `sync`, `kill` or `terminated`."""

    def worker_started(self, seconds: float) -> None:
        """A new pod's first step begins, `seconds` after the pod was first seen."""

    def pod_running(self, seconds: float) -> None:
        """A pod reached phase Running, `seconds` after it was first seen."""

    def container_start_attempted(self, container_type: str) -> None:
        """A container is about to be started: `container` or `init_container`."""

    def container_start_failed(self, container_type: str, reason: str) -> None:
        """A container could not be started."""

    def pod_recreated(self, *, static: bool) -> None:
        """A finished pod starts again under the same UID."""

    def orphan_found(self) -> None:
        """The runtime has a pod that no source delivers."""


class ProbeManager(Protocol):
    """Runs probes. Implemented by `podstatus.probes.workers.ProbeWorkers`."""

    def update_pod(self, pod: Pod, status: PodStatus, *, terminating: bool) -> None:
        """The pod has this new status; `terminating`: its containers are being stopped."""

    def remove_pod(self, uid: PodUID) -> None:
        """All containers of this pod have exited."""

    def retain_only(self, uids: set[PodUID]) -> None:
        """Drop the state of all pods except these."""


class NoopProbeManager:
    """Runs no probes: the runtime reports probe results itself, or the pods have no probes."""

    def update_pod(self, pod: Pod, status: PodStatus, *, terminating: bool) -> None:
        """Ignore the status: nothing is probed."""

    def remove_pod(self, uid: PodUID) -> None:
        """Do nothing: no probe is running."""

    def retain_only(self, uids: set[PodUID]) -> None:
        """Do nothing: there is no state."""
