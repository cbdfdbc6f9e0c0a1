"""What is wrong with a field, in the words that kube-apiserver has for it.

Upstream: apimachinery v0.36.4, pkg/util/validation/field/errors.go.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time

NON_NEGATIVE = "must be greater than or equal to 0"


class Cause(msgspec.Struct, frozen=True):
    """One thing that is wrong with an object."""

    reason: str
    """`FieldValueInvalid`, `FieldValueRequired`, …"""
    field: str
    message: str


def required(field: str, detail: str = "") -> Cause:
    """The field must be given."""
    return Cause("FieldValueRequired", field, _told("Required value", detail))


def forbidden(field: str, detail: str) -> Cause:
    """The field may not be given, or may not change."""
    return Cause("FieldValueForbidden", field, _told("Forbidden", detail))


def invalid_value(field: str, value: Any, detail: str) -> Cause:
    """The value breaks a rule."""
    return Cause("FieldValueInvalid", field, _told(f"Invalid value: {_shown(value)}", detail))


def invalid_values(field: str, value: Any, details: Iterable[str]) -> list[Cause]:
    """One cause for each rule that the value breaks."""
    return [invalid_value(field, value, detail) for detail in details]


def duplicate(field: str, value: Any, detail: str = "") -> Cause:
    """The value is there already."""
    return Cause("FieldValueDuplicate", field, _told(f"Duplicate value: {_shown(value)}", detail))


def not_there(field: str, value: Any) -> Cause:
    """What the value refers to does not exist."""
    return Cause("FieldValueNotFound", field, f"Not found: {_shown(value)}")


def unsupported(field: str, value: str, supported: Sequence[str]) -> Cause:
    """The value is none of those that there are."""
    listed = ", ".join(map(go_quoted, supported))
    told = _told(f"Unsupported value: {_shown(value)}", f"supported values: {listed}")
    return Cause("FieldValueNotSupported", field, told)


def too_long(field: str, limit: int) -> Cause:
    """The value has more than `limit` bytes."""
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> Cause:
    """The list has more than `limit` items."""
    detail = f"Too many: {count}: must have at most {limit} items"
    return Cause("FieldValueTooMany", field, detail)


def one_of(field: str, value: str, supported: Sequence[str]) -> list[Cause]:
    """The value must be given, and be one of these."""
    if not value:
        return [required(field)]
    return [] if value in supported else [unsupported(field, value, supported)]


def non_negative(field: str, value: int) -> list[Cause]:
    """The number may not be below zero."""
    return [invalid_value(field, value, NON_NEGATIVE)] if value < 0 else []


def within(field: str, value: int, low: int, high: int) -> list[Cause]:
    """The number must lie between two others, both included."""
    if low <= value <= high:
        return []
    return [invalid_value(field, value, between(low, high))]


def between(low: int, high: int) -> str:
    """Told of a number that does not lie between these."""
    return f"must be between {low} and {high}, inclusive"


def unchanged(field: str, new: Any, old: Any) -> list[Cause]:
    """The field may not change once it is set."""
    return [] if new == old else [invalid_value(field, new, "field is immutable")]


def _told(what: str, detail: str) -> str:
    return f"{what}: {detail}" if detail else what


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, Time):
        return go_quoted(value.wire or "")
    return msgspec.json.encode(value).decode()
