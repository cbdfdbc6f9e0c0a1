"""Which fields an object has and how a patch treats them, looked up as upstream does.

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
    """One field of a type: what lies below it, and how its list is patched."""

    schema: "Schema"
    element: "Schema | None"
    """What a list here holds; None if the Go field is neither a list nor a pointer."""
    merge: bool
    """Lists are merged element by element, otherwise replaced."""
    merge_key: str
    """The field that tells elements apart; empty for a list of scalars."""
    retain_keys: bool
    """A patch of an element names the keys that stay."""


class Schema(Struct, frozen=True, kw_only=True):
    """A type and its fields; lists, maps and scalars have none."""

    type: str
    fields: dict[str, Field]

    def __repr__(self) -> str:
        return f"Schema({self.type})"

    def field(self, key: str) -> Field:
        """The field for a JSON key, found without regard to case if need be."""
        found = self.fields.get(key) or self._field_ignoring_case(key)
        if found is None:
            raise PatchError(f"no field {key!r} in {self.type}; check the spelling of the patch")
        return found

    def list_field(self, key: str) -> tuple["Schema", Field]:
        """The field for a JSON key that holds a list, with the schema of its elements."""
        found = self.field(key)
        if found.element is None:
            raise PatchError(f"field {key!r} of {self.type} is {found.schema.type}, not a list")
        return found.element, found

    def _field_ignoring_case(self, key: str) -> Field | None:
        return _fields_by_folded_name(self.type).get(_fold_case(key))


def schema_of(kind: str) -> Schema:
    """The schema of a Go type, by its name without the package."""
    if kind not in _rows():
        raise KeyError(f"no schema for {kind!r}; schema_tables lists the types")
    return _schema(kind)


def _fold_case(key: str) -> str:
    # Names are ASCII; of all characters that Go folds to ASCII letters, lower() misses this one.
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
    # Upstream takes any pointer for a pointer to a list.
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
