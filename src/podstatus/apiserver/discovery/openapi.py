"""OpenAPI documents: what `kubectl create`, `apply` and `explain` read before they begin.

kubectl reads version 3: that PATCH takes `fieldValidation`, so that validation is left to the
server, and the schemas, from which `apply` computes its patches (fields, merge keys). The schemas
come from the tables that patches are applied with; these have no descriptions and no required
fields. Version 2 is served as JSON for other clients; kubectl would want it as protobuf, but never
gets there.

Upstream: kubernetes v1.36.4, api/openapi-spec; kubectl v0.36.4, pkg/cmd/apply/patcher.go.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any, Final

import msgspec

from podstatus.apiserver.discovery.discovery import GIT_VERSION, subresource_verbs, verbs
from podstatus.apiserver.resources import RESOURCES, Resource
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


_INFO: Final = {"title": "Kubernetes", "version": GIT_VERSION}
_PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_METHODS: Final = {"create": "post", "delete": "delete", "get": "get", "patch": "patch"} | {
    "list": "get",
    "update": "put",
    "deletecollection": "delete",
}
_OF_MANY: Final = frozenset(["create", "list", "deletecollection"])
_WRITES: Final = frozenset(["create", "patch", "update"])
_ACTIONS: Final = {"create": "post", "update": "put"}


def version_3_index() -> Document:
    """`/openapi/v3`: where the documents are. The hash tells caches when one has changed."""
    return {
        "paths": {
            prefix.lstrip("/"): {"serverRelativeURL": f"/openapi/v3{prefix}?hash={_hash(prefix)}"}
            for prefix in _prefixes()
        }
    }


def version_3(prefix: str) -> bytes | None:
    """`/openapi/v3/<prefix>`: one version of one group; None if there is no such."""
    return _version_3(prefix) if prefix in _prefixes() else None


@cache
def _version_3(prefix: str) -> bytes:
    resources = [resource for resource in RESOURCES if resource.prefix == prefix]
    schemas = Schemas("#/components/schemas/")
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {path: item for r in resources for path, item in _paths(r, schemas).items()},
        "components": {"schemas": _definitions(resources, schemas)},
    }
    return msgspec.json.encode(document)


@cache
def version_2() -> bytes:
    """`/openapi/v2`: the types of everything."""
    document = {
        "swagger": "2.0",
        "info": _INFO,
        "paths": {},
        "definitions": _definitions(RESOURCES, Schemas("#/definitions/", one_of=False)),
    }
    return msgspec.json.encode(document)


def _prefixes() -> list[str]:
    return sorted({resource.prefix for resource in RESOURCES})


def _hash(prefix: str) -> str:
    return sha256(_version_3(prefix)).hexdigest()[:32]


def _definitions(resources: Iterable[Resource], schemas: Schemas) -> Document:
    definitions: Document = {}
    for resource in resources:
        definitions |= schemas.of(resource)
    return dict(sorted(definitions.items()))


def _paths(resource: Resource, schemas: Schemas) -> Document:
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    many = f"{resource.prefix}{scope}/{resource.plural}"
    one = f"{many}/{{name}}"
    allowed = set(verbs(resource)) & set(_METHODS)
    in_path = ["namespace"] if resource.namespaced else []
    told = {
        many: _item(resource, allowed & _OF_MANY, in_path, schemas),
        one: _item(resource, allowed - _OF_MANY, [*in_path, "name"], schemas),
    }
    if "status" in resource.subresources:
        allowed = set(subresource_verbs("status"))
        told[f"{one}/status"] = _item(resource, allowed, [*in_path, "name"], schemas)
    return told


def _item(resource: Resource, allowed: set[str], in_path: list[str], schemas: Schemas) -> Document:
    operations = {_METHODS[verb]: _operation(resource, verb, schemas) for verb in sorted(allowed)}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in in_path
    ]
    return operations | {"parameters": parameters}


def _operation(resource: Resource, verb: str, schemas: Schemas) -> Document:
    answered = type_name(resource) + ("List" if verb == "list" else "")
    operation: Document = {
        "responses": {"200": _content("application/json", schemas.reference(answered), "OK")},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "kind": resource.kind,
            "version": resource.version,
        },
    }
    return operation | _input(resource, verb, schemas)


def _input(resource: Resource, verb: str, schemas: Schemas) -> Document:
    if verb not in _WRITES:
        return {}
    names = ("dryRun", "fieldManager", "fieldValidation")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    media_types = _PATCH_TYPES if verb == "patch" else ("application/json",)
    schema = {"type": "object"} if verb == "patch" else schemas.reference(type_name(resource))
    content = {media: {"schema": schema} for media in media_types}
    return {"parameters": parameters, "requestBody": {"content": content, "required": True}}


def _content(media: str, schema: Document, description: str) -> Document:
    return {"description": description, "content": {media: {"schema": schema}}}
