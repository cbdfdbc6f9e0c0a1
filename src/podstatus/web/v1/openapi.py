"""The OpenAPI 3.1 document of all endpoints, with the JSON schemas of the /v1 responses.

msgspec derives the schemas. It does not know the wire form of `Time`, so it is given copies of the
structs that have strings in these fields. Kubelet endpoints are listed by path only.
"""

import re
import typing
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import structs

from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.web.routes import ROUTES, Route
from podstatus.web.v1.endpoints import ENDPOINTS, WATCH_ENDPOINT, Endpoint, Parameter
from podstatus.web.v1.wire import ErrorResponse

_TIMESTAMP = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
REFERENCE = "#/components/schemas/{name}"


def schemas(kinds: Iterable[type[msgspec.Struct]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The schema of each struct, and the schemas that they refer to, by name."""
    references, components = msgspec.json.schema_components(
        [_wire_type(kind) for kind in kinds], ref_template=REFERENCE
    )
    return list(references), components


@cache
def _wire_type(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """A copy of the struct with strings in place of times."""
    hints = typing.get_type_hints(kind)
    fields = [_field(field, _wire_hint(hints[field.name])) for field in structs.fields(kind)]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        namespace={"__doc__": kind.__doc__},
        kw_only=True,
        omit_defaults=kind.__struct_config__.omit_defaults,
    )


def _field(field: structs.FieldInfo, kind: Any) -> tuple[str, Any, Any]:
    default = field.default
    if kind is _TIMESTAMP and default == UNSET_TIME:
        kind, default = kind | msgspec.UnsetType, msgspec.UNSET
    # msgspec marks an absent one of the two with NODEFAULT.
    defaults: dict[str, Any] = {"default": default, "default_factory": field.default_factory}
    return field.name, kind, msgspec.field(name=field.encode_name, **defaults)


def _wire_hint(hint: Any) -> Any:
    """The type of a field with strings in place of times."""
    if hint is Time:
        return _TIMESTAMP
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _wire_type(hint)
    parts = typing.get_args(hint)
    if not parts or typing.get_origin(hint) is typing.Literal:
        return hint
    converted = tuple(_wire_hint(part) for part in parts)
    if converted == parts:
        return hint
    origin = typing.get_origin(hint)
    return typing.Union[converted] if origin not in (tuple, list, dict) else origin[converted]  # noqa: UP007


OPENAPI_PATHS = ("/openapi.json", "/openapi/v3")
"""The paths of the document itself."""
FRESHNESS_HEADER = "X-Podstatus-Age"
_ERROR_RESPONSE = {
    "description": "An error; the message says what is wrong and what to do.",
    "content": {"application/json": {"schema": {"$ref": REFERENCE.format(name="ErrorResponse")}}},
}
_AGE_HEADER = {
    FRESHNESS_HEADER: {
        "description": "Seconds since the last response of the API server.",
        "schema": {"type": "number"},
    }
}


@cache
def openapi_document(routes: tuple[Route, ...] = ROUTES) -> bytes:
    responses = [it.response for it in ENDPOINTS if it.response is not None]
    references, components = schemas([*responses, ErrorResponse])
    by_kind = dict(zip(responses, references, strict=False))
    endpoints = {it.pattern: it for it in (*ENDPOINTS, WATCH_ENDPOINT)}
    paths = {route.pattern: _path(route, endpoints.get(route.pattern), by_kind) for route in routes}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "podstatus",
            "version": "v1",
            "description": "Pods, their node, their history and alerts.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


def _path(
    route: Route, endpoint: Endpoint | None, by_kind: dict[type[msgspec.Struct], dict[str, Any]]
) -> dict[str, Any]:
    parameters: Sequence[Parameter] = ()
    if endpoint is None:
        responses: dict[str, Any] = {"200": {"description": "As the kubelet's response."}}
        help, tag = f"Kubelet endpoint: {route.kind.value}.", "kubelet"
    else:
        responses = {"200": _success_response(endpoint, by_kind), "default": _ERROR_RESPONSE}
        help, parameters, tag = endpoint.help, endpoint.parameters, "podstatus"
    is_open = route.allows_anonymous_local or route.allows_anonymous
    return {
        method.lower(): {
            "operationId": f"{method.lower()}{_operation_name(route.pattern)}",
            "summary": help,
            "tags": [tag],
            "parameters": [*_path_parameters(route.pattern), *_query_parameters(parameters)],
            "responses": responses,
            "security": [{}, {"token": []}] if is_open else [{"token": []}],
        }
        for method in route.methods
    }


def _success_response(
    endpoint: Endpoint, by_kind: dict[type[msgspec.Struct], dict[str, Any]]
) -> dict[str, Any]:
    if endpoint.response is None:
        return {"description": endpoint.help, "content": {endpoint.media_type: {"schema": {}}}}
    return {
        "description": (endpoint.response.__doc__ or "").strip(),
        "headers": _AGE_HEADER,
        "content": {endpoint.media_type: {"schema": by_kind[endpoint.response]}},
    }


def _path_parameters(pattern: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", pattern):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    for parameter in parameters:
        yield {
            "name": parameter.name,
            "in": "query",
            "description": parameter.help,
            "schema": {"type": parameter.kind},
        }


def _operation_name(pattern: str) -> str:
    """The path in PascalCase: `/v1/pods/{name}` becomes `V1PodsName`."""
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"\w+", pattern))
