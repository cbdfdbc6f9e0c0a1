"""Validate an update of a pod's status: containers, conditions, addresses, resource claims.

Upstream: ValidatePodStatusUpdate, validateContainerStatusUsers,
validateContainerStatusAllocatedResourcesStatus, validatePodResourceClaimStatuses,
validatePodExtendedResourceClaimStatus, pkg/apis/core/validation/validation.go v1.36.4.
"""

from collections.abc import Iterable

from podstatus.apiserver.strategies.pod.update import validate_annotation_update
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import (
    ContainerExtendedResourceRequest,
    ContainerStatus,
    LinuxContainerUser,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodStatus,
    ResourceStatus,
)
from podstatus.kube.restart_policy import all_containers_could_restart, container_should_restart
from podstatus.kube.validation.addresses import validate_addresses
from podstatus.kube.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    immutable,
    in_range,
    invalid_value,
    invalid_values,
    required,
    required_name,
    too_long,
    unsupported,
)
from podstatus.kube.validation.meta import validate_meta_update
from podstatus.kube.validation.names import dns_label, dns_subdomain, qualified_name
from podstatus.kube.validation.pod_spec import validate_annotations

_CLAIM_NOT_IN_SPEC = "must match the name of an entry in `spec.resourceClaims`"
_EXTENDED_CLAIM_FIELD = "status.extendedResourceClaimStatus"
_CONTAINER_NOT_IN_SPEC = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_REQUEST_NOT_IN_SPEC = (
    "must match the extended resource name of an entry in "
    "spec.initContainers.resources.requests or spec.containers.resources.requests"
)


def validate_claim_statuses(status: PodStatus, spec: PodSpec) -> list[FieldError]:
    claims = {claim.name for claim in spec.resource_claims or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(status.resource_claim_statuses or ()):
        field = f"status.resourceClaimStatuses[{index}]"
        if claim.name not in claims:
            errors.append(invalid_value(f"{field}.name", claim.name, _CLAIM_NOT_IN_SPEC))
        if claim.name in seen:
            errors.append(duplicate(f"{field}.name", claim.name))
        seen.add(claim.name)
        name = claim.resource_claim_name
        if name is not None:
            errors += invalid_values(f"{field}.resourceClaimName", name, dns_subdomain(name))
    if status.extended_resource_claim_status is not None:
        errors += _validate_extended_claim(status.extended_resource_claim_status, spec)
    return errors


def _validate_extended_claim(
    claim_status: PodExtendedResourceClaimStatus, spec: PodSpec
) -> list[FieldError]:
    mappings = claim_status.request_mappings or ()
    errors = []
    if not mappings:
        why = "at least one request mapping is required"
        errors.append(required(f"{_EXTENDED_CLAIM_FIELD}.requestMappings", why))
    for index, mapping in enumerate(mappings):
        field = f"{_EXTENDED_CLAIM_FIELD}.requestMappings[{index}]"
        errors += _validate_mapping(field, mapping, spec)
        if mapping in mappings[:index]:
            errors.append(duplicate(f"{field}.containerName", mapping.container_name))
            errors.append(duplicate(f"{field}.resourceName", mapping.resource_name))
            errors.append(duplicate(f"{field}.requestName", mapping.request_name))
    field = f"{_EXTENDED_CLAIM_FIELD}.resourceClaimName"
    return errors + required_name(field, claim_status.resource_claim_name, dns_subdomain)


def _validate_mapping(
    field: str, mapping: ContainerExtendedResourceRequest, spec: PodSpec
) -> list[FieldError]:
    containers = {c.name: c for c in (*(spec.init_containers or ()), *(spec.containers or ()))}
    container = containers.get(mapping.container_name)
    errors = []
    if container is None:
        errors.append(
            invalid_value(f"{field}.containerName", mapping.container_name, _CONTAINER_NOT_IN_SPEC)
        )
    elif mapping.resource_name not in (container.resources.requests or {}):
        errors.append(
            invalid_value(f"{field}.resourceName", mapping.resource_name, _REQUEST_NOT_IN_SPEC)
        )
    name = mapping.request_name
    return errors + invalid_values(f"{_EXTENDED_CLAIM_FIELD}.requestName", name, dns_label(name))


_ID_LIMIT = 2**31 - 1
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MESSAGE_LIMIT = 1024


def validate_users(
    field: str, statuses: Iterable[ContainerStatus], system: str
) -> list[FieldError]:
    """Return the field errors of the containers' users.

    `system` is the pod's spec.os.name, empty if unset.
    """
    errors: list[FieldError] = []
    for index, status in enumerate(statuses):
        user = status.user.linux if status.user is not None else None
        if user is None:
            continue
        path = f"{field}[{index}].user.linux"
        if system == "windows":
            errors.append(forbidden(path, "cannot be set for a windows pod"))
        elif system in ("", "linux"):
            errors += _validate_user(path, user)
    return errors


def validate_allocated(
    field: str, statuses: Iterable[ContainerStatus], containers: Iterable[Container]
) -> list[FieldError]:
    """Return the field errors of the containers' device health (allocatedResourcesStatus)."""
    by_name = {container.name: container for container in reversed(tuple(containers))}
    errors: list[FieldError] = []
    for index, status in enumerate(statuses):
        for number, resource in enumerate(status.allocated_resources_status or ()):
            path = f"{field}[{index}].allocatedResourcesStatus[{number}]"
            container = by_name.get(status.name)
            if container is not None:
                errors += _validate_resource(path, resource.name, container)
            errors += _validate_health(path, resource)
    return errors


def forbid_allocated(field: str, statuses: Iterable[ContainerStatus]) -> list[FieldError]:
    """Return an error per ephemeral container with devices: they cannot have any."""
    return [
        forbidden(
            f"{field}[{index}].allocatedResourcesStatus",
            "must not be specified in container status",
        )
        for index, status in enumerate(statuses)
        if status.allocated_resources_status
    ]


def _validate_user(field: str, user: LinuxContainerUser) -> list[FieldError]:
    errors = in_range(f"{field}.uid", user.uid, 0, _ID_LIMIT)
    errors += in_range(f"{field}.gid", user.gid, 0, _ID_LIMIT)
    for index, group in enumerate(user.supplemental_groups or ()):
        errors += in_range(f"{field}.supplementalGroups[{index}]", group, 0, _ID_LIMIT)
    return errors


def _validate_resource(field: str, name: str, container: Container) -> list[FieldError]:
    if name.startswith("claim:"):
        claims = container.resources.claims or ()
        names = {f"claim:{c.name}/{c.request}".removesuffix("/") for c in claims}
        why = (
            "must match one of the container's resource claims in a format "
            "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
        )
    else:
        names = set(container.resources.requests or ())
        why = "must match one of the container's resource requests"
    return [] if name in names else [invalid_value(f"{field}.name", name, why)]


def _validate_health(field: str, status: ResourceStatus) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, resource in enumerate(status.resources or ()):
        path = f"{field}.resources[{index}]"
        if resource.health not in _HEALTH:
            errors.append(unsupported(f"{path}.health", resource.health, _HEALTH))
        if resource.message == "":
            errors.append(required(f"{path}.message", "must be non-empty if specified"))
        elif len((resource.message or "").encode()) > _MESSAGE_LIMIT:
            errors.append(too_long(f"{path}.message", _MESSAGE_LIMIT))
        if resource.resource_id in seen:
            errors.append(duplicate(f"{path}.resourceID", resource.resource_id))
        seen.add(resource.resource_id)
    return errors


_GATES = FeatureGates()
_BUILTIN_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE = "must be a non-negative integer"

_Statuses = tuple[ContainerStatus, ...]


def validate_pod_status_update(new: Pod, old: Pod) -> list[FieldError]:
    errors = validate_meta_update(new.metadata, old.metadata)
    errors += validate_annotation_update(new, old)
    errors += validate_annotations(new)
    errors += _validate_conditions(new.status.conditions or ())
    errors += _validate_nomination(new, old)
    if new.status.observed_generation < 0:
        value = new.status.observed_generation
        errors.append(invalid_value("status.observedGeneration", value, _NOT_NEGATIVE))
    errors += immutable("status.qosClass", new.status.qos_class, old.status.qos_class)
    errors += _validate_transitions(new.status, old)
    errors += validate_claim_statuses(new.status, new.spec)
    return errors + _validate_addresses(new.status, old.status) + _validate_details(new)


def _validate_conditions(conditions: Iterable[PodCondition]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        field = f"status.conditions[{index}]"
        if condition.observed_generation < 0:
            path = f"{field}.observedGeneration"
            errors.append(invalid_value(path, condition.observed_generation, _NOT_NEGATIVE))
        if condition.type not in _BUILTIN_CONDITIONS:
            wrong = qualified_name(condition.type)
            errors += invalid_values(f"{field}.Type", condition.type, wrong)
    return errors


def _validate_nomination(new: Pod, old: Pod) -> list[FieldError]:
    field, name = "status.nominatedNodeName", new.status.nominated_node_name
    if not name or name == old.status.nominated_node_name:
        return []
    errors = invalid_values(field, name, dns_subdomain(name))
    if old.spec.node_name:
        errors.append(forbidden(field, "may not be set on pods that are already bound to a node"))
    return errors


def _statuses_by_kind(status: PodStatus) -> dict[str, _Statuses]:
    return {
        "containerStatuses": status.container_statuses or (),
        "initContainerStatuses": status.init_container_statuses or (),
        "ephemeralContainerStatuses": status.ephemeral_container_statuses or (),
    }


def _containers_by_kind(spec: PodSpec) -> dict[str, tuple[Container, ...]]:
    """Return the containers by the field of their statuses; ephemeral ones never restart."""
    return {
        "containerStatuses": spec.containers or (),
        "initContainerStatuses": spec.init_containers or (),
    }


def _validate_transitions(new: PodStatus, old: Pod) -> list[FieldError]:
    spec, before = old.spec, _statuses_by_kind(old.status)
    containers, could_restart = _containers_by_kind(spec), all_containers_could_restart(spec)
    errors: list[FieldError] = []
    for kind, after in _statuses_by_kind(new).items():
        if kind not in containers or not could_restart:
            errors += _validate_restarts(kind, after, before[kind], containers.get(kind, ()), spec)
    return errors


def _validate_restarts(
    kind: str, new: _Statuses, old: _Statuses, containers: Iterable[Container], spec: PodSpec
) -> list[FieldError]:
    """A terminated container must not run again unless its restart policy says so."""
    running = {status.name for status in new if status.state.terminated is None}
    by_name = {container.name: container for container in reversed(tuple(containers))}
    errors = []
    for index, status in enumerate(old):
        ended = status.state.terminated
        if ended is None or status.name not in running:
            continue
        container = by_name.get(status.name)
        if container is None or not container_should_restart(
            container, spec, ended.exit_code, _GATES
        ):
            why = "may not be transitioned to non-terminated state"
            errors.append(forbidden(f"status.{kind}[{index}].state", why))
    return errors


def _validate_addresses(new: PodStatus, old: PodStatus) -> list[FieldError]:
    before = [address.ip for address in old.pod_ips or ()]
    addresses = [address.ip for address in new.pod_ips or ()]
    errors = validate_addresses("status.podIPs", addresses, before)
    host_addresses = [address.ip for address in new.host_ips or ()]
    if not host_addresses:
        return errors
    if host_addresses[0] != new.host_ip:
        why = "must be equal to `hostIP`"
        errors.append(invalid_value("status.hostIPs[0].ip", host_addresses[0], why))
    before = [address.ip for address in old.host_ips or ()]
    return errors + validate_addresses("status.hostIPs", host_addresses, before)


def _validate_details(pod: Pod) -> list[FieldError]:
    statuses, spec = _statuses_by_kind(pod.status), pod.spec
    system = spec.os.name if spec.os is not None else ""
    errors: list[FieldError] = []
    for kind, listed in statuses.items():
        errors += validate_users(f"status.{kind}", listed, system)
    for kind, containers in _containers_by_kind(spec).items():
        errors += validate_allocated(f"status.{kind}", statuses[kind], containers)
    ephemeral = "ephemeralContainerStatuses"
    return errors + forbid_allocated(f"status.{ephemeral}", statuses[ephemeral])
