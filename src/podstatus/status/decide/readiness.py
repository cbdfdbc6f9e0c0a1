"""What a probe's verdict does to a status.

Upstream: SetContainerReadiness, SetContainerStartup, findContainerStatus,
status_manager.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.conditions import replace_or_append_pod_condition
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.status.decide.generate import (
    generate_containers_ready_condition,
    generate_pod_ready_condition,
)


class ContainerLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a pod's status a container is."""

    status: ContainerStatus
    index: int
    init: bool


def find_container_status(status: PodStatus, container_id: str) -> ContainerLocation | None:
    """The container with this ID, regular ones first; ephemeral ones are not looked at."""
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
    """The status with that container ready or not, and the two conditions that follow.

    None when there is no such container or it is so already.
    """
    found = _find_by_id(status, container_id)
    if found is None or found.status.ready == ready:
        return None
    status = _with_container(status, found, structs.replace(found.status, ready=ready))
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
    """The status with that container started or not.

    None when there is no such container or it is so already.
    """
    found = _find_by_id(status, container_id)
    if found is None or found.status.started == started:
        return None
    return _with_container(status, found, structs.replace(found.status, started=started))


def _find_by_id(status: PodStatus, container_id: str) -> ContainerLocation | None:
    """A container that has an ID; one that was never started has none to be found by."""
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
    known = statuses or ()
    return (*known[:index], status, *known[index + 1 :])
