"""The resources allocated to each pod, and its last resize status.

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
    """Return the resources in the pod's spec that can be resized.

    Since v1.36 these are the pod-level resources and those of all init containers (not only
    sidecars) and regular containers. Ephemeral containers are not included.
    """
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    return PodResourceInfo(
        container_resources={container.name: container.resources for container in containers},
        pod_level_resources=pod.spec.resources,
    )


class PodAllocations:
    """Reads and writes the allocation state.

    Do not call it with a lock held: the state may block on disk I/O.
    """

    def __init__(self, state: AllocationState | None) -> None:
        self._state = NoAllocationState() if state is None else state
        check_port(self._state, AllocationState, "state")
        check_port(getattr(self._state, "allocated", None), AllocatedResources, "state.allocated")

    @property
    def is_persistent(self) -> bool:
        """Whether a state stores the allocations."""
        return not isinstance(self._state, NoAllocationState)

    def restore(self) -> None:
        """Load the state that was stored before a restart."""
        self._state.restore()

    def container_resources(self, uid: str, container: str) -> ResourceRequirements | None:
        """Return the resources allocated to the container, or None."""
        return self._state.allocated.container_resources(PodUID(uid), container)

    def set_pod(self, pod: Pod) -> None:
        """Record the resources in the pod's spec as allocated."""
        self._state.allocated.set_pod_resource_info(pod.uid, freeze(allocation_from_pod(pod)))

    def resize_status(self, uid: str) -> str | None:
        """Return the pod's last resize status, or None."""
        return self._state.resize_status(PodUID(uid))

    def set_resize_status(self, uid: str, status: str) -> None:
        """Store the resize status. Raises TypeError if it is not a str."""
        check_uid(uid)
        if not isinstance(status, str):
            raise TypeError(f"expected a resize status, got {type(status).__name__}; pass a str")
        self._state.set_resize_status(PodUID(uid), status)

    def remove_pod(self, uid: PodUID) -> None:
        """Remove the pod's allocation and resize status."""
        self._state.remove_pod(uid)

    def remove_orphaned_pods(self, keep: Collection[str]) -> None:
        """Remove all pods except those with these UIDs."""
        self._state.remove_orphaned_pods(keep)
