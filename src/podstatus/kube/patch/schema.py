"""Fields of API types and their patch strategies, looked up as upstream does.

Upstream: LookupPatchMetadataForStruct and LookupPatchMetadataForSlice, apimachinery v0.36.4.
"""

import re
from functools import cache
from typing import Final

from msgspec import Struct

from podstatus.kube.patch.errors import PatchError
from podstatus.kube.patch.schema_tables import TYPES

_LONG_S = "\N{LATIN SMALL LETTER LONG S}"


class Field(Struct, frozen=True, kw_only=True):
    """A field of a type: the schema of its value, and the patch strategy of its list."""

    schema: "Schema"
    element: "Schema | None"
    """The schema of list elements; None if the Go field is neither a list nor a pointer."""
    merge: bool
    """Whether lists are merged element by element, or replaced."""
    merge_key: str
    """The field that identifies elements; empty for a list of scalars."""
    retain_keys: bool
    """Whether a patch of an element lists the keys to retain."""


class Schema(Struct, frozen=True, kw_only=True):
    """A type and its fields; lists, maps and scalars have no fields."""

    type: str
    fields: dict[str, Field]

    def __repr__(self) -> str:
        return f"Schema({self.type})"

    def field(self, key: str) -> Field:
        """Return the field for a JSON key, ignoring case if needed. Raises PatchError."""
        field = self.fields.get(key) or self._field_ignoring_case(key)
        if field is None:
            raise PatchError(f"no field {key!r} in {self.type}; check the spelling of the patch")
        return field

    def list_field(self, key: str) -> tuple["Schema", Field]:
        """Return the field of a list, and the schema of its elements. Raises PatchError."""
        field = self.field(key)
        if field.element is None:
            raise PatchError(f"field {key!r} of {self.type} is {field.schema.type}, not a list")
        return field.element, field

    def _field_ignoring_case(self, key: str) -> Field | None:
        return _fields_by_folded_name(self.type).get(_fold_case(key))


def schema_of(kind: str) -> Schema:
    """Return the schema of a Go type, by its name without the package. Raises KeyError."""
    if kind not in _rows():
        raise KeyError(f"no schema for {kind!r}; schema_tables lists the types")
    return _schema(kind)


def _fold_case(key: str) -> str:
    # Names are ASCII; lower() misses one of the characters that Go folds to ASCII letters.
    return key.lower().replace(_LONG_S, "s")


@cache
def _fields_by_folded_name(type_name: str) -> dict[str, Field]:
    fields = _schema(type_name).fields
    return {_fold_case(name): field for name, field in reversed(fields.items())}


@cache
def _rows() -> dict[str, str]:
    lines = re.sub(r"\n +", " ", TYPES).strip().splitlines()
    return dict(line.split(": ", 1) for line in lines)


@cache
def _schema(type_name: str) -> Schema:
    fields = map(_parse_field, _rows().get(type_name, "").split())
    return Schema(type=type_name, fields=dict(fields))


def _parse_field(text: str) -> tuple[str, Field]:
    name, _, rest = text.partition("=")
    type_name, merge, merging = rest.partition("+")
    merge_key, _, option = merging.partition(",")
    type_name = type_name or "str"
    return name, Field(
        schema=_schema(type_name.removesuffix("?")),
        element=_element(type_name),
        merge=bool(merge),
        merge_key=merge_key,
        retain_keys=option == "retainKeys",
    )


def _element(type_name: str) -> Schema | None:
    if type_name.startswith("["):
        return _schema(type_name[1:-1])
    # Upstream treats any pointer as a pointer to a list.
    return _schema(type_name[:-1]) if type_name.endswith("?") else None


POD: Final = schema_of("Pod")
NODE: Final = schema_of("Node")
EVENT: Final = schema_of("Event")
NAMESPACE: Final = schema_of("Namespace")
LEASE: Final = schema_of("Lease")
CONFIG_MAP: Final = schema_of("ConfigMap")
SECRET: Final = schema_of("Secret")
SERVICE_ACCOUNT: Final = schema_of("ServiceAccount")
BINDING: Final = schema_of("Binding")
DELETE_OPTIONS: Final = schema_of("DeleteOptions")
TOKEN_REVIEW: Final = schema_of("TokenReview")
SUBJECT_ACCESS_REVIEW: Final = schema_of("SubjectAccessReview")
