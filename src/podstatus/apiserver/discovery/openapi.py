"""OpenAPI documents, which `kubectl create`, `apply` and `explain` read.

kubectl reads version 3: that PATCH takes `fieldValidation`, so that validation is left to the
server, and the schemas, from which `apply` computes its patches (fields, merge keys). They are the
schemas that patches are applied with, which have no descriptions and no required fields. Version 2
is served as JSON for other clients; kubectl accepts it only as protobuf, but never needs it.

Upstream: kubernetes v1.36.4, api/openapi-spec; kubectl v0.36.4, pkg/cmd/apply/patcher.go.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from typing import Final

import msgspec

from podstatus.apiserver.discovery.discovery import GIT_VERSION, subresource_verbs, verbs
from podstatus.apiserver.resources import METRICS_GROUP, SERVED_RESOURCES, ResourceInfo
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.patch.schema import Field, Schema, schema_of

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_METRICS: Final = "io.k8s.metrics.pkg.apis.metrics"
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
    "Condition",
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


class SchemaBuilder:
    """Builds the schemas of one document; `root` is the prefix of references.

    OpenAPI version 2 has no `oneOf`: a value of several types is declared as a string there.
    """

    def __init__(self, root: str, *, one_of: bool = True) -> None:
        self._root = root
        self._one_of = one_of

    def schemas_for(self, resource: ResourceInfo) -> Document:
        """Return the schemas of a resource, its list and all referenced types, by name."""
        schemas = {
            _name(schema.type, resource): self._object(schema, resource)
            for schema in _reachable(resource.schema.type, set())
        }
        schemas[schema_name(resource)] |= _group_version_kind(resource, resource.kind)
        schemas[f"{schema_name(resource)}List"] = self._list(resource)
        schemas[f"{_META}.ListMeta"] = _LIST_META
        return schemas

    def reference(self, name: str) -> Document:
        return {"$ref": f"{self._root}{name}"}

    def _object(self, schema: Schema, resource: ResourceInfo) -> Document:
        fields = schema.fields.items()
        return {
            "type": "object",
            "properties": {name: self._field(field, resource) for name, field in fields},
        }

    def _list(self, resource: ResourceInfo) -> Document:
        properties = {
            "apiVersion": _SCALARS["str"],
            "items": {"type": "array", "items": self.reference(schema_name(resource))},
            "kind": _SCALARS["str"],
            "metadata": self.reference(f"{_META}.ListMeta"),
        }
        listing = {"type": "object", "properties": properties, "required": ["items"]}
        return listing | _group_version_kind(resource, f"{resource.kind}List")

    def _field(self, field: Field, resource: ResourceInfo) -> Document:
        schema = self._type(field.schema.type, resource)
        if field.merge:
            schema["x-kubernetes-patch-strategy"] = "merge" + ",retainKeys" * field.retain_keys
        if field.merge_key:
            schema["x-kubernetes-patch-merge-key"] = field.merge_key
        return schema

    def _type(self, name: str, resource: ResourceInfo) -> Document:
        if name.startswith("["):
            return {"type": "array", "items": self._type(name[1:-1], resource)}
        if name.startswith("{"):
            return {"type": "object", "additionalProperties": self._type(name[1:-1], resource)}
        if name in _SCALARS:
            return self._scalar(_SCALARS[name])
        return self.reference(_name(name, resource))

    def _scalar(self, schema: Document) -> Document:
        if self._one_of or "oneOf" not in schema:
            return dict(schema)
        return {"type": "string"} | {key: schema[key] for key in schema if key != "oneOf"}


def schema_name(resource: ResourceInfo) -> str:
    return _name(resource.schema.type, resource)


def _name(type_name: str, resource: ResourceInfo) -> str:
    if type_name in _META_TYPES:
        return f"{_META}.{type_name}"
    if resource.group == METRICS_GROUP:
        return f"{_METRICS}.{resource.version}.{type_name}"
    package = resource.group.split(".")[0] or "core"
    return f"io.k8s.api.{package}.{resource.version}.{type_name}"


def _group_version_kind(resource: ResourceInfo, kind: str) -> Document:
    identity = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [identity]}


def _reachable(type_name: str, seen: set[str]) -> Iterator[Schema]:
    """Yield a type and all types that it refers to, each once."""
    type_name = type_name.strip("[{}]")
    if type_name in seen or type_name in _SCALARS:
        return
    seen.add(type_name)
    schema = schema_of(type_name)
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
_COLLECTION_VERBS: Final = frozenset(["create", "list", "deletecollection"])
_WRITE_VERBS: Final = frozenset(["create", "patch", "update"])
_ACTIONS: Final = {"create": "post", "update": "put"}


def openapi_v3_index() -> Document:
    """Return `/openapi/v3`: the documents with a content hash, so that clients can cache them."""
    return {
        "paths": {
            prefix.lstrip("/"): {"serverRelativeURL": f"/openapi/v3{prefix}?hash={_hash(prefix)}"}
            for prefix in _prefixes()
        }
    }


def openapi_v3(prefix: str) -> bytes | None:
    """Return `/openapi/v3/<prefix>` for one group version; None if there is none."""
    return _openapi_v3(prefix) if prefix in _prefixes() else None


@cache
def _openapi_v3(prefix: str) -> bytes:
    resources = [resource for resource in SERVED_RESOURCES if resource.prefix == prefix]
    schemas = SchemaBuilder("#/components/schemas/")
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {path: item for r in resources for path, item in _paths(r, schemas).items()},
        "components": {"schemas": _definitions(resources, schemas)},
    }
    return msgspec.json.encode(document)


@cache
def openapi_v2() -> bytes:
    """Return `/openapi/v2`: the types of all resources."""
    schemas = SchemaBuilder("#/definitions/", one_of=False)
    document = {
        "swagger": "2.0",
        "info": _INFO,
        "paths": {},
        "definitions": _definitions(SERVED_RESOURCES, schemas),
    }
    return msgspec.json.encode(document)


def _prefixes() -> list[str]:
    return sorted({resource.prefix for resource in SERVED_RESOURCES})


def _hash(prefix: str) -> str:
    return sha256(_openapi_v3(prefix)).hexdigest()[:32]


def _definitions(resources: Iterable[ResourceInfo], schemas: SchemaBuilder) -> Document:
    definitions: Document = {}
    for resource in resources:
        definitions |= schemas.schemas_for(resource)
    return dict(sorted(definitions.items()))


def _paths(resource: ResourceInfo, schemas: SchemaBuilder) -> Document:
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.prefix}{scope}/{resource.plural}"
    item = f"{collection}/{{name}}"
    allowed = set(verbs(resource)) & set(_METHODS)
    parameters = ["namespace"] if resource.namespaced else []
    paths = {
        collection: _item(resource, allowed & _COLLECTION_VERBS, parameters, schemas),
        item: _item(resource, allowed - _COLLECTION_VERBS, [*parameters, "name"], schemas),
    }
    if "status" in resource.subresources:
        allowed = set(subresource_verbs("status"))
        paths[f"{item}/status"] = _item(resource, allowed, [*parameters, "name"], schemas)
    return paths


def _item(
    resource: ResourceInfo, allowed: set[str], in_path: list[str], schemas: SchemaBuilder
) -> Document:
    operations = {_METHODS[verb]: _operation(resource, verb, schemas) for verb in sorted(allowed)}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in in_path
    ]
    return operations | {"parameters": parameters}


def _operation(resource: ResourceInfo, verb: str, schemas: SchemaBuilder) -> Document:
    response = schema_name(resource) + ("List" if verb == "list" else "")
    content = {"application/json": {"schema": schemas.reference(response)}}
    operation: Document = {
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "kind": resource.kind,
            "version": resource.version,
        },
    }
    return operation | _request_body(resource, verb, schemas)


def _request_body(resource: ResourceInfo, verb: str, schemas: SchemaBuilder) -> Document:
    if verb not in _WRITE_VERBS:
        return {}
    names = ("dryRun", "fieldManager", "fieldValidation")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    media_types = _PATCH_TYPES if verb == "patch" else ("application/json",)
    schema = {"type": "object"} if verb == "patch" else schemas.reference(schema_name(resource))
    content = {media: {"schema": schema} for media in media_types}
    return {"parameters": parameters, "requestBody": {"content": content, "required": True}}
