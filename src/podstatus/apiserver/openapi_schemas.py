"""The types of the API as OpenAPI schemas, from the tables that patches are applied with.

kubectl computes the patches of `apply` by these: which fields there are, which lists merge and
by what key. Prose and required fields are not in the tables, so not here either.
"""

from collections.abc import Iterator
from typing import Any, Final

from podstatus.apiserver.resources import Resource
from podstatus.kube.patch.schema import Field, Schema, schema_of

Document = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SCALARS: Final[dict[str, Document]] = {
    "str": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "FieldsV1": {"type": "object"},
}
_META_TYPES: Final = (
    "LabelSelector",
    "LabelSelectorRequirement",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
)
_LIST_META: Final[Document] = {
    "type": "object",
    "properties": {
        "continue": _SCALARS["str"],
        "remainingItemCount": _SCALARS["int64"],
        "resourceVersion": _SCALARS["str"],
        "selfLink": _SCALARS["str"],
    },
}


class Schemas:
    """Schemas of one document; `root` is where its references point to.

    Version 2 of OpenAPI has no `oneOf`: what is one of several types is called a string there.
    """

    def __init__(self, root: str, *, one_of: bool = True) -> None:
        self._root = root
        self._one_of = one_of

    def of(self, resource: Resource) -> Document:
        """The schemas of a resource, its list, and all that they refer to, by name."""
        told = {
            _name(schema.type, resource): self._object(schema, resource)
            for schema in _reachable(resource.schema.type, set())
        }
        told[type_name(resource)] |= _kinds(resource, resource.kind)
        told[f"{type_name(resource)}List"] = self._list(resource)
        told[f"{_META}.ListMeta"] = _LIST_META
        return told

    def reference(self, name: str) -> Document:
        """A reference to another schema."""
        return {"$ref": f"{self._root}{name}"}

    def _object(self, schema: Schema, resource: Resource) -> Document:
        fields = schema.fields.items()
        return {
            "type": "object",
            "properties": {name: self._field(field, resource) for name, field in fields},
        }

    def _list(self, resource: Resource) -> Document:
        properties = {
            "apiVersion": _SCALARS["str"],
            "items": {"type": "array", "items": self.reference(type_name(resource))},
            "kind": _SCALARS["str"],
            "metadata": self.reference(f"{_META}.ListMeta"),
        }
        listing = {"type": "object", "properties": properties, "required": ["items"]}
        return listing | _kinds(resource, f"{resource.kind}List")

    def _field(self, field: Field, resource: Resource) -> Document:
        told = self._type(field.schema.type, resource)
        if field.merge:
            told["x-kubernetes-patch-strategy"] = "merge" + ",retainKeys" * field.retain_keys
        if field.merge_key:
            told["x-kubernetes-patch-merge-key"] = field.merge_key
        return told

    def _type(self, name: str, resource: Resource) -> Document:
        if name.startswith("["):
            return {"type": "array", "items": self._type(name[1:-1], resource)}
        if name.startswith("{"):
            return {"type": "object", "additionalProperties": self._type(name[1:-1], resource)}
        if name in _SCALARS:
            return self._scalar(_SCALARS[name])
        return self.reference(_name(name, resource))

    def _scalar(self, told: Document) -> Document:
        if self._one_of or "oneOf" not in told:
            return dict(told)
        return {"type": "string"} | {key: told[key] for key in told if key != "oneOf"}


def type_name(resource: Resource) -> str:
    """What the schema of a resource is called."""
    return _name(resource.schema.type, resource)


def _name(of_type: str, resource: Resource) -> str:
    if of_type in _META_TYPES:
        return f"{_META}.{of_type}"
    package = resource.group.split(".")[0] or "core"
    return f"io.k8s.api.{package}.{resource.version}.{of_type}"


def _kinds(resource: Resource, kind: str) -> Document:
    told = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [told]}


def _reachable(of_type: str, seen: set[str]) -> Iterator[Schema]:
    """The types with fields that a type is made of, itself first."""
    of_type = of_type.strip("[{}]")
    if of_type in seen or of_type in _SCALARS:
        return
    seen.add(of_type)
    schema = schema_of(of_type)
    yield schema
    for field in schema.fields.values():
        yield from _reachable(field.schema.type, seen)
