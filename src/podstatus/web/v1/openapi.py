"""The OpenAPI 3.1 document of all endpoints, with the JSON schemas of the /v1 values.

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
from podstatus.web.v1.endpoints import QUESTIONS, WATCH, Parameter, Question
from podstatus.web.v1.wire import Refused

_INSTANT = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
REFERENCE = "#/components/schemas/{name}"


def schemas(kinds: Iterable[type[msgspec.Struct]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The schema of each of these kinds, and those that they refer to, by name."""
    found, components = msgspec.json.schema_components(
        [_as_it_travels(kind) for kind in kinds], ref_template=REFERENCE
    )
    return list(found), components


@cache
def _as_it_travels(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The kind with texts in place of times."""
    hints = typing.get_type_hints(kind)
    fields = [_field(field, _travelling(hints[field.name])) for field in structs.fields(kind)]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        namespace={"__doc__": kind.__doc__},
        kw_only=True,
        omit_defaults=kind.__struct_config__.omit_defaults,
    )


def _field(field: structs.FieldInfo, kind: Any) -> tuple[str, Any, Any]:
    default = field.default
    if kind is _INSTANT and default == UNSET_TIME:
        kind, default = kind | msgspec.UnsetType, msgspec.UNSET
    # Either of the two may be missing, which a value of msgspec's own stands for.
    given: dict[str, Any] = {"default": default, "default_factory": field.default_factory}
    return field.name, kind, msgspec.field(name=field.encode_name, **given)


def _travelling(hint: Any) -> Any:
    """What a field's type becomes."""
    if hint is Time:
        return _INSTANT
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _as_it_travels(hint)
    parts = typing.get_args(hint)
    if not parts or typing.get_origin(hint) is typing.Literal:
        return hint
    changed = tuple(_travelling(part) for part in parts)
    if changed == parts:
        return hint
    origin = typing.get_origin(hint)
    return typing.Union[changed] if origin not in (tuple, list, dict) else origin[changed]  # noqa: UP007


OPENAPI = ("/openapi.json", "/openapi/v3")
"""Where it is."""
KNOWLEDGE_AGE = "X-Podstatus-Knowledge-Age"
_REFUSED = {
    "description": "It was not answered; the message says why and what to do.",
    "content": {"application/json": {"schema": {"$ref": REFERENCE.format(name="Refused")}}},
}
_AGE_HEADER = {
    KNOWLEDGE_AGE: {
        "description": "Seconds since the API server was last heard.",
        "schema": {"type": "number"},
    }
}


@cache
def openapi_document(routes: tuple[Route, ...] = ROUTES) -> bytes:
    """The document, OpenAPI 3.1, as it travels."""
    answers = [question.answer for question in QUESTIONS if question.answer is not None]
    found, components = schemas([*answers, Refused])
    by_kind = dict(zip(answers, found, strict=False))
    asked = {question.pattern: question for question in (*QUESTIONS, WATCH)}
    paths = {route.pattern: _path(route, asked.get(route.pattern), by_kind) for route in routes}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "podstatus",
            "version": "v1",
            "description": "What is known of pods and their node, and what happened to them.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


def _path(
    route: Route, question: Question | None, by_kind: dict[type[msgspec.Struct], dict[str, Any]]
) -> dict[str, Any]:
    parameters: Sequence[Parameter] = ()
    if question is None:
        answered: dict[str, Any] = {"200": {"description": "As a kubelet answers."}}
        help, tag = f"As of a kubelet: {route.about.value}.", "kubelet"
    else:
        answered = {"200": _answered(question, by_kind), "default": _REFUSED}
        help, parameters, tag = question.help, question.parameters, "podstatus"
    return {
        method.lower(): {
            "operationId": f"{method.lower()}{_words(route.pattern)}",
            "summary": help,
            "tags": [tag],
            "parameters": [*_names(route.pattern), *_query(parameters)],
            "responses": answered,
            "security": [{"token": []}] if not _is_open(route) else [{}, {"token": []}],
        }
        for method in route.methods
    }


def _is_open(route: Route) -> bool:
    return route.is_open or route.is_open_everywhere


def _answered(
    question: Question, by_kind: dict[type[msgspec.Struct], dict[str, Any]]
) -> dict[str, Any]:
    if question.answer is None:
        return {"description": question.help, "content": {question.media: {"schema": {}}}}
    return {
        "description": (question.answer.__doc__ or "").strip(),
        "headers": _AGE_HEADER,
        "content": {question.media: {"schema": by_kind[question.answer]}},
    }


def _names(pattern: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", pattern):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query(parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    for parameter in parameters:
        yield {
            "name": parameter.name,
            "in": "query",
            "description": parameter.help,
            "schema": {"type": parameter.kind},
        }


def _words(pattern: str) -> str:
    """A path as one name: `/v1/pods/{name}` is `V1PodsName`."""
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"\w+", pattern))
