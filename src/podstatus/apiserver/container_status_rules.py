"""Rules for what a node tells of single containers: users, and the health of devices.

Upstream: validateContainerStatusUsers, validateContainerStatusAllocatedResourcesStatus,
pkg/apis/core/validation/validation.go v1.36.4.
"""

from collections.abc import Iterable

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod_status import ContainerStatus, LinuxContainerUser, ResourceStatus
from podstatus.kube.validation.field_errors import (
    Cause,
    duplicate,
    forbidden,
    invalid_value,
    required,
    too_long,
    unsupported,
    within,
)

_ID_LIMIT = 2**31 - 1
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MESSAGE_LIMIT = 1024


def validate_users(field: str, statuses: Iterable[ContainerStatus], system: str) -> list[Cause]:
    """What is wrong with the users that containers run as; `system` is the pod's, if it says."""
    found: list[Cause] = []
    for index, status in enumerate(statuses):
        user = status.user.linux if status.user is not None else None
        if user is None:
            continue
        path = f"{field}[{index}].user.linux"
        if system == "windows":
            found.append(forbidden(path, "cannot be set for a windows pod"))
        elif system in ("", "linux"):
            found += _validate_user(path, user)
    return found


def validate_allocated(
    field: str, statuses: Iterable[ContainerStatus], containers: Iterable[Container]
) -> list[Cause]:
    """What is wrong with what is told of the devices that containers have."""
    by_name = {container.name: container for container in reversed(tuple(containers))}
    found: list[Cause] = []
    for index, status in enumerate(statuses):
        for number, told in enumerate(status.allocated_resources_status or ()):
            path = f"{field}[{index}].allocatedResourcesStatus[{number}]"
            container = by_name.get(status.name)
            if container is not None:
                found += _validate_resource(path, told.name, container)
            found += _validate_health(path, told)
    return found


def forbid_allocated(field: str, statuses: Iterable[ContainerStatus]) -> list[Cause]:
    """Ephemeral containers have no devices."""
    return [
        forbidden(
            f"{field}[{index}].allocatedResourcesStatus",
            "must not be specified in container status",
        )
        for index, status in enumerate(statuses)
        if status.allocated_resources_status
    ]


def _validate_user(field: str, user: LinuxContainerUser) -> list[Cause]:
    found = within(f"{field}.uid", user.uid, 0, _ID_LIMIT)
    found += within(f"{field}.gid", user.gid, 0, _ID_LIMIT)
    for index, group in enumerate(user.supplemental_groups or ()):
        found += within(f"{field}.supplementalGroups[{index}]", group, 0, _ID_LIMIT)
    return found


def _validate_resource(field: str, name: str, container: Container) -> list[Cause]:
    if name.startswith("claim:"):
        claims = container.resources.claims or ()
        known = {f"claim:{c.name}/{c.request}".removesuffix("/") for c in claims}
        why = (
            "must match one of the container's resource claims in a format "
            "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
        )
    else:
        known = set(container.resources.requests or ())
        why = "must match one of the container's resource requests"
    return [] if name in known else [invalid_value(f"{field}.name", name, why)]


def _validate_health(field: str, told: ResourceStatus) -> list[Cause]:
    found = []
    seen: set[str] = set()
    for index, resource in enumerate(told.resources or ()):
        path = f"{field}.resources[{index}]"
        if resource.health not in _HEALTH:
            found.append(unsupported(f"{path}.health", resource.health, _HEALTH))
        if resource.message == "":
            found.append(required(f"{path}.message", "must be non-empty if specified"))
        elif len((resource.message or "").encode()) > _MESSAGE_LIMIT:
            found.append(too_long(f"{path}.message", _MESSAGE_LIMIT))
        if resource.resource_id in seen:
            found.append(duplicate(f"{path}.resourceID", resource.resource_id))
        seen.add(resource.resource_id)
    return found
