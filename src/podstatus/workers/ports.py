"""The port of the prober."""

from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus


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
