"""Apply probe results to a status.

Upstream: SetContainerReadiness, SetContainerStartup, findContainerStatus,
status_manager.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.conditions import replace_or_append_pod_condition
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.status.decide.generate_conditions import (
    generate_containers_ready_condition,
    generate_pod_ready_condition,
)


class ContainerLocation(msgspec.Struct, frozen=True, kw_only=True):
    """A container status and its position in the pod's status."""

    status: ContainerStatus
    index: int
    init: bool


def find_container_status(status: PodStatus, container_id: str) -> ContainerLocation | None:
    """Return the container with this ID, or None.

    Regular containers are searched first, then init containers; ephemeral ones are not.
    """
    for init, statuses in (
        (False, status.container_statuses),
        (True, status.init_container_statuses),
    ):
        for index, container in enumerate(statuses or ()):
            if container.container_id == container_id:
                return ContainerLocation(status=container, index=index, init=init)
    return None


def with_container_readiness(
    pod: Pod, status: PodStatus, container_id: str, *, ready: bool
) -> PodStatus | None:
    """Return the status with the container's readiness, Ready and ContainersReady updated.

    Returns None if the container does not exist or already has this readiness.
    """
    location = _find_by_id(status, container_id)
    if location is None or location.status.ready == ready:
        return None
    status = _with_container(status, location, structs.replace(location.status, ready=ready))
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    conditions = status.conditions
    for condition in (
        generate_pod_ready_condition(pod, status, conditions, statuses, status.phase),
        generate_containers_ready_condition(pod, status, statuses, status.phase),
    ):
        conditions = replace_or_append_pod_condition(conditions, condition)
    return structs.replace(status, conditions=conditions)


def with_container_startup(
    status: PodStatus, container_id: str, *, started: bool
) -> PodStatus | None:
    """Return the status with the container's `started` field updated.

    Returns None if the container does not exist or already has this value.
    """
    location = _find_by_id(status, container_id)
    if location is None or location.status.started == started:
        return None
    return _with_container(status, location, structs.replace(location.status, started=started))


def _find_by_id(status: PodStatus, container_id: str) -> ContainerLocation | None:
    """Like `find_container_status`, but None for "": a container that never started has no ID."""
    return find_container_status(status, container_id) if container_id else None


def _with_container(
    status: PodStatus, location: ContainerLocation, container: ContainerStatus
) -> PodStatus:
    if location.init:
        changed = _replace_at(status.init_container_statuses, location.index, container)
        return structs.replace(status, init_container_statuses=changed)
    changed = _replace_at(status.container_statuses, location.index, container)
    return structs.replace(status, container_statuses=changed)


def _replace_at(
    statuses: tuple[ContainerStatus, ...] | None, index: int, status: ContainerStatus
) -> tuple[ContainerStatus, ...]:
    old = statuses or ()
    return (*old[:index], status, *old[index + 1 :])
