"""OpenAPI documents: what `kubectl create`, `apply` and `explain` ask before they begin.

kubectl reads version 3: that PATCH takes `fieldValidation`, so that it leaves validation to the
server, and the schemas, to compute patches with. Version 2 is served as JSON for other clients;
kubectl would want it as protobuf, but never gets there.

Upstream: kubernetes v1.36.4, api/openapi-spec; kubectl v0.36.4, pkg/cmd/apply/patcher.go.
"""

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from typing import Any, Final

import msgspec

from podstatus.apiserver.discovery import GIT_VERSION, subresource_verbs, verbs
from podstatus.apiserver.openapi_schemas import Schemas, type_name
from podstatus.apiserver.resources import RESOURCES, Resource

Document = dict[str, Any]

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
