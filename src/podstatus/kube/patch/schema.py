"""Fields of API types and their patch strategies, looked up as upstream does.

The fields and their types are those of the structs in `kube.objects`.

Upstream: LookupPatchMetadataForStruct and LookupPatchMetadataForSlice, apimachinery v0.36.4.
"""

import re
import typing
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final

from msgspec import Struct, structs

from podstatus.kube.encoding.wire_struct import Wire, strip_none
from podstatus.kube.objects.authentication import SubjectAccessReview, TokenRequest, TokenReview
from podstatus.kube.objects.cluster import (
    Binding,
    ConfigMap,
    DeleteOptions,
    Lease,
    Namespace,
    Secret,
    ServiceAccount,
)
from podstatus.kube.objects.event import Event
from podstatus.kube.objects.metrics import NodeMetrics, PodMetrics
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.kube.patch.errors import PatchError

_LONG_S = "\N{LATIN SMALL LETTER LONG S}"

_MERGED_LISTS: Final = """
ObjectMeta: ownerReferences=uid finalizers=
PodSpec: volumes=name,retainKeys initContainers=name containers=name ephemeralContainers=name
  imagePullSecrets=name hostAliases=ip topologySpreadConstraints=topologyKey schedulingGates=name
  resourceClaims=name,retainKeys
Container: ports=containerPort env=name volumeMounts=mountPath volumeDevices=devicePath
EphemeralContainer: ports=containerPort env=name volumeMounts=mountPath volumeDevices=devicePath
PodStatus: conditions=type hostIPs=ip podIPs=ip resourceClaimStatuses=name,retainKeys
ContainerStatus: volumeMounts=mountPath allocatedResourcesStatus=name
NodeSpec: podCIDRs=
NodeStatus: conditions=type addresses=type
NamespaceStatus: conditions=type
ServiceAccount: secrets=name
ServiceSpec: ports=port
ServiceStatus: conditions=type
"""
"""The lists that are merged, by type, with the key that identifies elements, if they have fields.

With `retainKeys`, a patch of an element lists the keys to retain. All other lists are replaced.
"""


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

    @property
    def fields(self) -> dict[str, Field]:
        """The fields by their names on the wire."""
        return _fields(self.type)

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
    if kind not in _types():
        raise KeyError(f"no schema for {kind!r}; no object of kube.objects has it")
    return Schema(type=kind)


def _fold_case(key: str) -> str:
    # Names are ASCII; lower() misses one of the characters that Go folds to ASCII letters.
    return key.lower().replace(_LONG_S, "s")


@cache
def _fields_by_folded_name(type_name: str) -> dict[str, Field]:
    fields = _fields(type_name)
    return {_fold_case(name): field for name, field in reversed(fields.items())}


@cache
def _fields(type_name: str) -> dict[str, Field]:
    merged = dict(item.split("=") for item in table_rows(_MERGED_LISTS).get(type_name, "").split())
    fields = _types().get(type_name, {}).items()
    return {name: _field(field_type, merged.get(name)) for name, field_type in fields}


def _field(type_name: str, merged: str | None) -> Field:
    merge_key, _, option = (merged or "").partition(",")
    return Field(
        schema=Schema(type=type_name.removesuffix("?")),
        element=_element(type_name),
        merge=merged is not None,
        merge_key=merge_key,
        retain_keys=option == "retainKeys",
    )


def _element(type_name: str) -> Schema | None:
    if type_name.startswith("["):
        return Schema(type=type_name[1:-1])
    # Upstream treats any pointer as a pointer to a list.
    return Schema(type=type_name[:-1]) if type_name.endswith("?") else None


@cache
def table_rows(table: str) -> dict[str, str]:
    """Return the entries `Type: field=… field=…` of a table, continued on indented lines."""
    lines = re.sub(r"\n +", " ", table).strip().splitlines()
    return dict(line.split(": ", 1) for line in lines)


@cache
def _types() -> dict[str, dict[str, str]]:
    """Return the types of the fields of each type, by their names on the wire."""
    # Go's own fields of two types that JSON has as scalars.
    types = {
        "IntOrString": {"Type": "int64", "IntVal": "int32", "StrVal": "str"},
        "Quantity": {"Format": "str"},
    }
    kinds: list[type[Wire]] = [*_OBJECTS]
    for kind in kinds:  # grows during the iteration
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = {info.encode_name: hints[info.name] for info in structs.fields(kind)}
        types[kind.__name__] = {name: _type_name(hint) for name, hint in fields.items()}
        below = (nested for hint in fields.values() for nested in _structs_in(hint))
        kinds.extend(nested for nested in dict.fromkeys(below) if nested.__name__ not in types)
    return types


def _type_name(declared: Any) -> str:
    """Return the name of a type: `int64`, `Container`, `Time?` (a pointer), `[str]`, `{str}`."""
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is Annotated:
        return str(arguments[1])
    if origin is tuple:
        return f"[{_type_name(arguments[0])}]"
    if origin is dict:
        return f"{{{_type_name(arguments[1])}}}"
    inner, optional = strip_none(declared)
    if optional:
        name = _type_name(inner)
        return name if name[0] in "[{" else f"{name}?"
    return _TYPE_NAMES.get(declared) or str(declared.__name__)


def _structs_in(declared: Any) -> Iterator[type[Wire]]:
    if typing.get_origin(declared) is not None:
        for argument in typing.get_args(declared):
            yield from _structs_in(argument)
    elif isinstance(declared, type) and issubclass(declared, Wire):
        yield declared


_TYPE_NAMES: Final[dict[Any, str]] = {int: "int32", int | str: "IntOrString", Any: "FieldsV1?"}
_OBJECTS: Final = (
    *(Pod, Node, Event, Namespace, Lease, ConfigMap, Secret, ServiceAccount, Service),
    *(Binding, DeleteOptions, TokenRequest, TokenReview, SubjectAccessReview),
    *(NodeMetrics, PodMetrics),
)
POD: Final = Schema(type="Pod")
NODE: Final = Schema(type="Node")
EVENT: Final = Schema(type="Event")
BINDING: Final = Schema(type="Binding")
DELETE_OPTIONS: Final = Schema(type="DeleteOptions")
TOKEN_REQUEST: Final = Schema(type="TokenRequest")
TOKEN_REVIEW: Final = Schema(type="TokenReview")
SUBJECT_ACCESS_REVIEW: Final = Schema(type="SubjectAccessReview")
