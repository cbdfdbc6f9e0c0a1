"""What the node has granted to each pod, and the last word on its resize.

Upstream: allocation_manager.go v1.36.4; SetPodResizeStatus, status_manager.go v1.28.0.
"""

from collections.abc import Collection

from podstatus.kube.encoding.frozen_copy import freeze
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID, check_uid
from podstatus.status.ports import (
    AllocatedResources,
    AllocationState,
    NoAllocationState,
    check_port,
)


def allocation_from_pod(pod: Pod) -> PodResourceInfo:
    """The resources that the pod's spec asks for, for what can be resized.

    Since v1.36 that is the pod as a whole and every container but ephemeral ones; of init
    containers not only sidecars.
    """
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    return PodResourceInfo(
        container_resources={container.name: container.resources for container in containers},
        pod_level_resources=pod.spec.resources,
    )


class PodAllocations:
    """Asks the state, and tells it. Not to be called under a lock: it may wait for a disk."""

    def __init__(self, state: AllocationState | None) -> None:
        self._state = NoAllocationState() if state is None else state
        check_port(self._state, AllocationState, "state")
        check_port(getattr(self._state, "allocated", None), AllocatedResources, "state.allocated")

    @property
    def is_persistent(self) -> bool:
        """Whether there is a state that remembers them."""
        return not isinstance(self._state, NoAllocationState)

    def restore(self) -> None:
        """Bring back what was known before a restart."""
        self._state.restore()

    def container_resources(self, uid: str, container: str) -> ResourceRequirements | None:
        """What is allocated to this container."""
        return self._state.allocated.container_resources(PodUID(uid), container)

    def set_pod(self, pod: Pod) -> None:
        """Remember that the pod has been granted what its spec asks for."""
        self._state.allocated.set_pod_resource_info(pod.uid, freeze(allocation_from_pod(pod)))

    def resize_status(self, uid: str) -> str | None:
        """The last word on the resize of this pod."""
        return self._state.resize_status(PodUID(uid))

    def set_resize_status(self, uid: str, status: str) -> None:
        """Remember the last word on the resize of this pod."""
        check_uid(uid)
        if not isinstance(status, str):
            raise TypeError(f"expected a resize status, got {type(status).__name__}; give its name")
        self._state.set_resize_status(PodUID(uid), status)

    def remove_pod(self, uid: PodUID) -> None:
        """Forget a pod."""
        self._state.remove_pod(uid)

    def remove_orphaned_pods(self, keep: Collection[str]) -> None:
        """Forget all pods but these."""
        self._state.remove_orphaned_pods(keep)
