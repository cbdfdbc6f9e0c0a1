"""Validation of the requests, limits and claims of containers and pods.

Upstream: validateResourceRequirements, pkg/apis/core/validation/validation.go v1.36.4.
"""

from collections.abc import Callable, Mapping

from msgspec import structs

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import is_pod_level_resource, pod_limits, pod_requests
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.validation.field_errors import (
    NON_NEGATIVE,
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    invalid_values,
    not_found,
    required,
    unsupported,
)
from podstatus.kube.validation.names import qualified_name

_ZERO = Quantity("0")
_FOR_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_WHOLE = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_STANDARD = (
    *_FOR_CONTAINERS,
    *(f"{side}.{name}" for side in ("requests", "limits") for name in _FOR_CONTAINERS),
    *_WHOLE,
    "storage",
    "requests.storage",
)

_NameRule = Callable[[str, str], list[FieldError]]


def validate_container_resources(
    field: str, resources: ResourceRequirements, claims: frozenset[str]
) -> list[FieldError]:
    """Return the errors of a container's resources; `claims` are those of the pod."""
    errors = _validate_sides(field, resources, _container_resource_name)
    names: set[tuple[str, str]] = set()
    for index, claim in enumerate(resources.claims or ()):
        path = f"{field}.claims[{index}]"
        if not claim.name:
            errors.append(required(f"{path}.name"))
        elif claim.name not in claims:
            errors.append(not_found(f"{path}.name", claim.name))
        if (claim.name, claim.request) in names:
            errors.append(duplicate(path, claim.name))
        names.add((claim.name, claim.request))
    return errors


def validate_pod_resources(spec: PodSpec, resources: ResourceRequirements) -> list[FieldError]:
    """Return the errors of pod-level resources, also compared with those of the containers."""
    field = "spec.resources"
    errors = []
    if resources.claims is not None:
        detail = "claims may not be set for Resources at pod-level"
        errors.append(forbidden(f"{field}.claims", detail))
    errors += _validate_sides(field, resources, _pod_resource_name)
    limits, requests = resources.limits or {}, resources.requests or {}
    parts = structs.replace(spec, resources=None, overhead=None)
    pages = {name: q for name, q in pod_limits(parts).items() if _is_huge_page(name)}
    errors += _validate_total(f"{field}.requests", requests, pod_requests(parts), "requests")
    errors += _validate_total(f"{field}.limits", limits, pages, "limits")
    for index, container in enumerate(spec.containers or ()):
        for name, limit in (container.resources.limits or {}).items():
            if name in limits and limit.compare(limits[name]) > 0:
                path = f"{field}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limits[name].canonical}"
                errors.append(invalid_value(path, limit.canonical, detail))
    return errors


def _validate_total(
    field: str, specified: Mapping[str, Quantity], total: Mapping[str, Quantity], side: str
) -> list[FieldError]:
    return [
        invalid_value(
            f"{field}[{name}]",
            specified[name].canonical,
            f"must be greater than or equal to aggregate container {side} of {needed.canonical}",
        )
        for name, needed in total.items()
        if name in specified and needed.compare(specified[name]) > 0
    ]


def validate_quantity(field: str, name: str, quantity: Quantity) -> list[FieldError]:
    errors = []
    if quantity.compare(_ZERO) < 0:
        errors.append(invalid_value(field, quantity.canonical, NON_NEGATIVE))
    if (name in _WHOLE or _is_extended(name)) and not _is_whole(quantity):
        errors.append(invalid_value(field, quantity.canonical, "must be an integer"))
    return errors


def _validate_sides(
    field: str, resources: ResourceRequirements, name_rule: _NameRule
) -> list[FieldError]:
    limits, requests = resources.limits or {}, resources.requests or {}
    errors: list[FieldError] = []
    for side, listed in (("limits", limits), ("requests", requests)):
        for name, quantity in listed.items():
            path = f"{field}.{side}[{name}]"
            errors += name_rule(path, name) + validate_quantity(path, name, quantity)
            if _is_huge_page(name) and not _fills_pages(name, quantity):
                amount = quantity.canonical
                detail = f"{amount} is not positive integer multiple of {name}"
                errors.append(invalid_value(path, amount, detail))
    for name, quantity in requests.items():
        errors += _validate_bound(field, name, quantity, limits)
    names = (*limits, *requests)
    if any(map(_is_huge_page, names)) and not {"cpu", "memory"} & set(names):
        errors.append(forbidden(field, "HugePages require cpu or memory"))
    return errors


def _validate_bound(
    field: str, name: str, quantity: Quantity, limits: Mapping[str, Quantity]
) -> list[FieldError]:
    overcommits = _is_native(name) and not _is_huge_page(name)
    limit = limits.get(name)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [] if overcommits else [required(f"{field}.limits", detail)]
    difference = quantity.compare(limit)
    if difference and not overcommits:
        detail = f"must be equal to {name} limit of {limit.canonical}"
    elif difference > 0:
        detail = f"must be less than or equal to {name} limit of {limit.canonical}"
    else:
        return []
    return [invalid_value(f"{field}.requests", quantity.canonical, detail)]


def _container_resource_name(field: str, name: str) -> list[FieldError]:
    errors = _resource_name(field, name)
    if "/" not in name:
        if name not in _FOR_CONTAINERS and not _is_huge_page(name):
            errors.append(invalid_value(field, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not _is_extended(name):
        detail = "doesn't follow extended resource name standard"
        errors.append(invalid_value(field, name, detail))
    return errors


def _pod_resource_name(field: str, name: str) -> list[FieldError]:
    errors = _resource_name(field, name)
    if not errors and not is_pod_level_resource(name):
        errors.append(unsupported(field, name, ("cpu", "hugepages-", "memory")))
    return errors


def _resource_name(field: str, name: str) -> list[FieldError]:
    errors = invalid_values(field, name, qualified_name(name))
    if not errors and "/" not in name and name not in _STANDARD and not _is_huge_page(name):
        detail = "must be a standard resource type or fully qualified"
        errors.append(invalid_value(field, name, detail))
    return errors


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    if _is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name(f"requests.{name}")


def _is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def _fills_pages(name: str, quantity: Quantity) -> bool:
    try:
        page = Quantity(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    return page.value > 0 and _is_whole(page) and quantity.value % page.value == 0


def _is_whole(quantity: Quantity) -> bool:
    parts = quantity.parts
    return parts.scale >= 0 or parts.value % 10**-parts.scale == 0
