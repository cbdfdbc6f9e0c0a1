"""Field errors with the messages of kube-apiserver.

Upstream: apimachinery v0.36.4, pkg/util/validation/field/errors.go.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time

NON_NEGATIVE = "must be greater than or equal to 0"


class FieldError(msgspec.Struct, frozen=True):
    """One error in a field of an object."""

    reason: str
    """`FieldValueInvalid`, `FieldValueRequired`, …"""
    field: str
    message: str


def required(field: str, detail: str = "") -> FieldError:
    """The field is missing or empty."""
    return FieldError("FieldValueRequired", field, _join_detail("Required value", detail))


def forbidden(field: str, detail: str) -> FieldError:
    """The field must not be set, or must not change."""
    return FieldError("FieldValueForbidden", field, _join_detail("Forbidden", detail))


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    """The value violates a rule."""
    return FieldError(
        "FieldValueInvalid", field, _join_detail(f"Invalid value: {_format_value(value)}", detail)
    )


def invalid_values(field: str, value: Any, details: Iterable[str]) -> list[FieldError]:
    """Return one error for each rule that the value violates."""
    return [invalid_value(field, value, detail) for detail in details]


def duplicate(field: str, value: Any, detail: str = "") -> FieldError:
    """The value occurs more than once."""
    return FieldError(
        "FieldValueDuplicate",
        field,
        _join_detail(f"Duplicate value: {_format_value(value)}", detail),
    )


def not_found(field: str, value: Any) -> FieldError:
    """The object that the value refers to does not exist."""
    return FieldError("FieldValueNotFound", field, f"Not found: {_format_value(value)}")


def unsupported(field: str, value: str, supported: Sequence[str]) -> FieldError:
    """The value is not one of the supported values."""
    listed = ", ".join(map(go_quoted, supported))
    detail = _join_detail(
        f"Unsupported value: {_format_value(value)}", f"supported values: {listed}"
    )
    return FieldError("FieldValueNotSupported", field, detail)


def too_long(field: str, limit: int) -> FieldError:
    """The value has more than `limit` bytes."""
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """The list has more than `limit` items."""
    detail = f"Too many: {count}: must have at most {limit} items"
    return FieldError("FieldValueTooMany", field, detail)


def required_name(field: str, value: str, rule: Callable[[str], Iterable[str]]) -> list[FieldError]:
    """Return an error if the value is empty, otherwise one for each violation of the rule."""
    return invalid_values(field, value, rule(value)) if value else [required(field)]


def one_of(field: str, value: str, supported: Sequence[str]) -> list[FieldError]:
    """Return an error unless the value is set and one of these."""
    if not value:
        return [required(field)]
    return [] if value in supported else [unsupported(field, value, supported)]


def non_negative(field: str, value: int) -> list[FieldError]:
    return [invalid_value(field, value, NON_NEGATIVE)] if value < 0 else []


def in_range(field: str, value: int, low: int, high: int) -> list[FieldError]:
    """Return an error unless the number is in the range, bounds included."""
    if low <= value <= high:
        return []
    return [invalid_value(field, value, range_message(low, high))]


def range_message(low: int, high: int) -> str:
    """Return the message for a number outside of the range."""
    return f"must be between {low} and {high}, inclusive"


def immutable(field: str, new: Any, old: Any) -> list[FieldError]:
    """Return an error if the field has changed."""
    return [] if new == old else [invalid_value(field, new, "field is immutable")]


def _join_detail(what: str, detail: str) -> str:
    return f"{what}: {detail}" if detail else what


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, Time):
        return go_quoted(value.wire or "")
    return msgspec.json.encode(value).decode()
