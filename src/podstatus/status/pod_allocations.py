"""The resources that are allocated to a pod.

Upstream: allocation_manager.go v1.36.4; SetPodAllocation, status_manager.go v1.28.0.
"""

from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod


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


def requests_from_pod(pod: Pod) -> PodResourceInfo:
    """Return the part that the status manager of v1.28 stores: requests of regular containers."""
    return PodResourceInfo(
        container_resources={
            container.name: ResourceRequirements(requests=container.resources.requests)
            for container in pod.spec.containers or ()
        }
    )
