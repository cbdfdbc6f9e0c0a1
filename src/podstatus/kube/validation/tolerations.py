"""Rules for taints, and for the tolerations that answer them.

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
    """What is wrong with tolerations."""
    found: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        found += _validate_toleration(f"{field}[{index}]", toleration)
    return found


def validate_added_tolerations(
    field: str, new: tuple[Toleration, ...], old: tuple[Toleration, ...]
) -> list[FieldError]:
    """Tolerations may be added; of those there are, only the seconds may change."""
    left = {structs.replace(toleration, toleration_seconds=None) for toleration in new}
    kept = all(structs.replace(before, toleration_seconds=None) in left for before in old)
    if not kept:
        why = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden(field, why)]
    return validate_tolerations(field, new)


def validate_taints(field: str, taints: tuple[Taint, ...]) -> list[FieldError]:
    """What is wrong with the taints of a node."""
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"{field}[{index}]"
        found += invalid_values(f"{path}.key", taint.key, qualified_name(taint.key))
        if wrong := label_value(taint.value):
            found.append(invalid_value(f"{path}.value", taint.value, ";".join(wrong)))
        found += one_of(f"{path}.effect", taint.effect, _EFFECTS)
        if (taint.key, taint.effect) in seen:
            why = "taints must be unique by key and effect pair"
            told = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect}
            found.append(duplicate(path, told | {"TimeAdded": _format_time_added(taint)}, why))
        seen.add((taint.key, taint.effect))
    return found


def _format_time_added(taint: Taint) -> str | None:
    return taint.time_added.wire if taint.time_added is not None else None


def _validate_toleration(field: str, toleration: Toleration) -> list[FieldError]:
    found: list[FieldError] = []
    if toleration.key:
        found += invalid_values(f"{field}.key", toleration.key, qualified_name(toleration.key))
    elif toleration.operator != "Exists":
        why = (
            "operator must be Exists when `key` is empty, "
            'which means "match all values and all keys"'
        )
        found.append(invalid_value(f"{field}.operator", toleration.operator, why))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid_value(f"{field}.effect", toleration.effect, why))
    found += _validate_operator(f"{field}.operator", toleration)
    if toleration.effect:
        found += one_of(f"{field}.effect", toleration.effect, _EFFECTS)
    return found


def _validate_operator(field: str, toleration: Toleration) -> list[FieldError]:
    match toleration.operator:
        case "" | "Equal":
            wrong = ";".join(label_value(toleration.value))
        case "Exists":
            wrong = "value must be empty when `operator` is 'Exists'" if toleration.value else ""
        case "Lt" | "Gt":
            return [unsupported(field, toleration.operator, ("Equal", "Exists", "Lt", "Gt"))]
        case other:
            return [unsupported(field, other, ("Equal", "Exists"))]
    return [invalid_value(field, toleration.value, wrong)] if wrong else []
