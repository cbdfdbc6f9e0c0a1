"""The OpenAPI document of all that the agent can be asked: our own API with its values, the others
by their paths.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from podstatus.web.query_paths import QUESTIONS, WATCH, Parameter, Question
from podstatus.web.query_schemas import REFERENCE, schemas
from podstatus.web.query_values import Refused
from podstatus.web.routes import ROUTES, Route

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
