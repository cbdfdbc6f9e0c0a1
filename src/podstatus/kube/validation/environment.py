"""Validation of the environment variables of a container.

Upstream: ValidateEnv, ValidateEnvFrom, pkg/apis/core/validation/validation.go v1.36.4.
"""

import re

from podstatus.kube.objects.containers import Container, EnvFromSource, EnvVar, EnvVarSource
from podstatus.kube.objects.meta import ObjectFieldSelector
from podstatus.kube.validation.field_errors import (
    FieldError,
    invalid_value,
    invalid_values,
    required,
    required_name,
    unsupported,
)
from podstatus.kube.validation.names import (
    config_key,
    dns_subdomain,
    environment_name,
    qualified_name,
)

_SUBSCRIPT = re.compile(r"(.+)\['(.*)'\]")
_SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FIELDS_OF_VOLUMES = (*_SUBSCRIPTED, "spec.restartPolicy", "spec.schedulerName", "status.phase")
_RESOURCES = tuple(
    f"{side}.{name}"
    for side in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_ONE = "may not have more than one field specified at a time"


def validate_environment(field: str, container: Container) -> list[FieldError]:
    """Return the errors of the variables of a container and of their sources."""
    errors: list[FieldError] = []
    for index, variable in enumerate(container.env or ()):
        errors += _validate_variable(f"{field}.env[{index}]", variable)
    for index, source in enumerate(container.env_from or ()):
        errors += _validate_env_from(f"{field}.envFrom", index, source)
    return errors


def _validate_variable(field: str, variable: EnvVar) -> list[FieldError]:
    errors = required_name(f"{field}.name", variable.name, environment_name)
    if variable.value_from is None:
        return errors
    path = f"{field}.valueFrom"
    errors += _validate_source(path, variable.value_from)
    source_count = _count(variable.value_from)
    if not source_count:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid_value(path, "", detail))
    elif variable.value:
        errors.append(invalid_value(path, "", "may not be specified when `value` is not empty"))
    elif source_count > 1:
        errors.append(invalid_value(path, "", _ONE))
    return errors


def _count(source: EnvVarSource) -> int:
    return sum(getattr(source, name) is not None for name in source.__struct_fields__)


def _validate_source(field: str, source: EnvVarSource) -> list[FieldError]:
    errors: list[FieldError] = []
    if source.field_ref is not None:
        errors += _validate_field_ref(f"{field}.fieldRef", source.field_ref)
    if source.resource_field_ref is not None:
        errors += _validate_resource(
            f"{field}.resourceFieldRef", source.resource_field_ref.resource
        )
    for name, selector in (
        ("configMapKeyRef", source.config_map_key_ref),
        ("secretKeyRef", source.secret_key_ref),
    ):
        if selector is not None:
            errors += _validate_key(f"{field}.{name}", selector.name, selector.key)
    return errors


def _validate_field_ref(field: str, selector: ObjectFieldSelector) -> list[FieldError]:
    path = selector.field_path
    if not path:
        return [required(f"{field}.fieldPath")]
    match = _SUBSCRIPT.fullmatch(path)
    if match is not None and match[1] in _SUBSCRIPTED:
        key = match[2].lower() if match[1] == "metadata.annotations" else match[2]
        return invalid_values(field, key, qualified_name(key))
    if path in _FIELDS or path == "spec.host":
        return []
    if path in _FIELDS_OF_VOLUMES:
        return [unsupported(f"{field}.fieldPath", path, _FIELDS)]
    lacks = "does not support subscript" if match is not None else "not supported"
    detail = f"error converting fieldPath: field label {lacks}: {path}"
    return [invalid_value(f"{field}.fieldPath", path, detail)]


def _validate_resource(field: str, resource: str) -> list[FieldError]:
    if not resource:
        return [required(f"{field}.resource")]
    if resource in _RESOURCES or resource.startswith(_HUGE_PAGES):
        return []
    return [unsupported(f"{field}.resource", resource, sorted(_RESOURCES))]


def _validate_key(field: str, name: str, key: str) -> list[FieldError]:
    errors = invalid_values(f"{field}.name", name, dns_subdomain(name))
    return errors + required_name(f"{field}.key", key, config_key)


def _validate_env_from(field: str, index: int, source: EnvFromSource) -> list[FieldError]:
    path = f"{field}[{index}]"
    messages = environment_name(source.prefix) if source.prefix else []
    errors = invalid_values(f"{path}.prefix", source.prefix, messages)
    references = [
        (name, reference)
        for name, reference in (
            ("configMapRef", source.config_map_ref),
            ("secretRef", source.secret_ref),
        )
        if reference is not None
    ]
    for name, reference in references:
        errors += required_name(f"{path}.{name}.name", reference.name, dns_subdomain)
    if not references:
        detail = "must specify one of: `configMapRef` or `secretRef`"
        errors.append(invalid_value(field, "", detail))
    elif len(references) > 1:
        errors.append(invalid_value(field, "", _ONE))
    return errors
