"""Rules for what a status tells of the resource claims of a pod.

Upstream: validatePodResourceClaimStatuses, validatePodExtendedResourceClaimStatus,
pkg/apis/core/validation/validation.go v1.36.4.
"""

from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import (
    ContainerExtendedResourceRequest,
    PodExtendedResourceClaimStatus,
    PodStatus,
)
from podstatus.kube.validation.field_errors import (
    Cause,
    duplicate,
    invalid_value,
    invalid_values,
    required,
)
from podstatus.kube.validation.names import dns_label, dns_subdomain

_OF_THE_POD = "must match the name of an entry in `spec.resourceClaims`"
_EXTENDED = "status.extendedResourceClaimStatus"
_NO_CONTAINER = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_NO_REQUEST = (
    "must match the extended resource name of an entry in "
    "spec.initContainers.resources.requests or spec.containers.resources.requests"
)


def validate_claim_statuses(status: PodStatus, spec: PodSpec) -> list[Cause]:
    """What is wrong with the claims that a status tells of."""
    known = {claim.name for claim in spec.resource_claims or ()}
    found: list[Cause] = []
    seen: set[str] = set()
    for index, told in enumerate(status.resource_claim_statuses or ()):
        field = f"status.resourceClaimStatuses[{index}]"
        if told.name not in known:
            found.append(invalid_value(f"{field}.name", told.name, _OF_THE_POD))
        if told.name in seen:
            found.append(duplicate(f"{field}.name", told.name))
        seen.add(told.name)
        name = told.resource_claim_name
        if name is not None:
            found += invalid_values(f"{field}.resourceClaimName", name, dns_subdomain(name))
    if status.extended_resource_claim_status is not None:
        found += _validate_extended(status.extended_resource_claim_status, spec)
    return found


def _validate_extended(told: PodExtendedResourceClaimStatus, spec: PodSpec) -> list[Cause]:
    mappings = told.request_mappings or ()
    found = []
    if not mappings:
        why = "at least one request mapping is required"
        found.append(required(f"{_EXTENDED}.requestMappings", why))
    for index, mapping in enumerate(mappings):
        field = f"{_EXTENDED}.requestMappings[{index}]"
        found += _validate_mapping(field, mapping, spec)
        if mapping in mappings[:index]:
            found.append(duplicate(f"{field}.containerName", mapping.container_name))
            found.append(duplicate(f"{field}.resourceName", mapping.resource_name))
            found.append(duplicate(f"{field}.requestName", mapping.request_name))
    if not told.resource_claim_name:
        return [*found, required(f"{_EXTENDED}.resourceClaimName")]
    wrong = dns_subdomain(told.resource_claim_name)
    return found + invalid_values(f"{_EXTENDED}.resourceClaimName", told.resource_claim_name, wrong)


def _validate_mapping(
    field: str, mapping: ContainerExtendedResourceRequest, spec: PodSpec
) -> list[Cause]:
    containers = {c.name: c for c in (*(spec.init_containers or ()), *(spec.containers or ()))}
    container = containers.get(mapping.container_name)
    found = []
    if container is None:
        found.append(invalid_value(f"{field}.containerName", mapping.container_name, _NO_CONTAINER))
    elif mapping.resource_name not in (container.resources.requests or {}):
        found.append(invalid_value(f"{field}.resourceName", mapping.resource_name, _NO_REQUEST))
    name = mapping.request_name
    return found + invalid_values(f"{_EXTENDED}.requestName", name, dns_label(name))
