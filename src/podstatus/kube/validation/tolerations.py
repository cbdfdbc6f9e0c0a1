"""Validation of taints and tolerations.

Upstream: ValidateTolerations, validateNodeTaints, pkg/apis/core/validation/validation.go
v1.36.4.
"""

from msgspec import structs

from podstatus.kube.objects.node import Taint
from podstatus.kube.objects.pod_spec import Toleration
from podstatus.kube.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    invalid_values,
    one_of,
    unsupported,
)
from podstatus.kube.validation.names import label_value, qualified_name

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def validate_tolerations(field: str, tolerations: tuple[Toleration, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        errors += _validate_toleration(f"{field}[{index}]", toleration)
    return errors


def validate_added_tolerations(
    field: str, new: tuple[Toleration, ...], old: tuple[Toleration, ...]
) -> list[FieldError]:
    """Return errors unless the update only adds tolerations or changes tolerationSeconds."""
    remaining = {structs.replace(toleration, toleration_seconds=None) for toleration in new}
    is_unchanged = all(
        structs.replace(before, toleration_seconds=None) in remaining for before in old
    )
    if not is_unchanged:
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden(field, detail)]
    return validate_tolerations(field, new)


def validate_taints(field: str, taints: tuple[Taint, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"{field}[{index}]"
        errors += invalid_values(f"{path}.key", taint.key, qualified_name(taint.key))
        if messages := label_value(taint.value):
            errors.append(invalid_value(f"{path}.value", taint.value, ";".join(messages)))
        errors += one_of(f"{path}.effect", taint.effect, _EFFECTS)
        if (taint.key, taint.effect) in seen:
            detail = "taints must be unique by key and effect pair"
            value = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect}
            errors.append(duplicate(path, value | {"TimeAdded": _format_time_added(taint)}, detail))
        seen.add((taint.key, taint.effect))
    return errors


def _format_time_added(taint: Taint) -> str | None:
    return taint.time_added.wire if taint.time_added is not None else None


def _validate_toleration(field: str, toleration: Toleration) -> list[FieldError]:
    errors: list[FieldError] = []
    if toleration.key:
        errors += invalid_values(f"{field}.key", toleration.key, qualified_name(toleration.key))
    elif toleration.operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, "
            'which means "match all values and all keys"'
        )
        errors.append(invalid_value(f"{field}.operator", toleration.operator, detail))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid_value(f"{field}.effect", toleration.effect, detail))
    errors += _validate_operator(f"{field}.operator", toleration)
    if toleration.effect:
        errors += one_of(f"{field}.effect", toleration.effect, _EFFECTS)
    return errors


def _validate_operator(field: str, toleration: Toleration) -> list[FieldError]:
    match toleration.operator:
        case "" | "Equal":
            message = ";".join(label_value(toleration.value))
        case "Exists":
            message = "value must be empty when `operator` is 'Exists'" if toleration.value else ""
        case "Lt" | "Gt":
            return [unsupported(field, toleration.operator, ("Equal", "Exists", "Lt", "Gt"))]
        case other:
            return [unsupported(field, other, ("Equal", "Exists"))]
    return [invalid_value(field, toleration.value, message)] if message else []
