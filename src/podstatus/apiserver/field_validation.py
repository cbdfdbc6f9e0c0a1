"""Which fields of a body are unknown or given twice, told as kube-apiserver tells `kubectl`.

Discovery says that we take `fieldValidation`, so kubectl leaves this to us: Strict refuses,
Warn warns, Ignore keeps silent. Fields that nobody knows are stored all the same.

Upstream: apiserver v0.36.4, pkg/endpoints/handlers/create.go and rest.go.
"""

import json
from typing import Any, Final

from podstatus.apiserver import problems
from podstatus.apiserver.problems import Problem
from podstatus.apiserver.resources import Resource
from podstatus.kube.documents import encode_document
from podstatus.kube.rules.causes import Cause
from podstatus.kube.rules.fields import MAX_ERRORS, Members, field_errors, first_field_errors
from podstatus.kube.text import go_quoted

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"

_DIRECTIVES: Final = ("", IGNORE, STRICT, WARN)
_NOWHERE: Final = object()


def strict_errors(body: bytes, resource: Resource) -> list[str]:
    """What is wrong with the fields of an object, in the order of the text, which is JSON.

    Raises Problem if it is nested too deeply.
    """
    try:
        # Numbers stay text: they are not looked at, and may be longer than Python reads.
        read = json.loads(body, object_pairs_hook=Members, parse_int=str, parse_float=str)
        return first_field_errors(read, resource.schema)
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None


def strict_errors_of(document: dict[str, Any], resource: Resource) -> list[str]:
    """All of them, of an object that was patched."""
    try:
        return list(field_errors(document, resource.schema))
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None


def check_directive(directive: str, options: str) -> str:
    """The value of `fieldValidation`; empty is Warn. Raises Problem.

    `options` is what upstream calls the parameters: CreateOptions, UpdateOptions, PatchOptions.
    """
    if directive not in _DIRECTIVES:
        supported = ", ".join(f'"{allowed}"' for allowed in _DIRECTIVES)
        message = f'Unsupported value: "{directive}": supported values: {supported}'
        cause = Cause("FieldValueNotSupported", "fieldValidation", message)
        raise problems.invalid(options, "", [cause], group="meta.k8s.io")
    return directive or WARN


def check_body(body: bytes, resource: Resource, directive: str) -> list[str]:
    """The warnings about a body, which is JSON. Raises Problem if it is to be strict."""
    errors = [] if directive == IGNORE else strict_errors(body, resource)
    if errors and directive == STRICT:
        raise strict_problem(resource, errors)
    return errors


def check_patched(
    new: dict[str, Any], old: dict[str, Any], resource: Resource, directive: str
) -> list[str]:
    """The warnings about what a patch made of an object. Raises Problem if it is to be strict.

    What was there before is nobody's mistake now: we store what nobody knows, upstream does not.
    """
    touched = {key: value for key, value in new.items() if value is not old.get(key, _NOWHERE)}
    if directive == IGNORE or not (errors := strict_errors_of(touched, resource)):
        return []
    before = frozenset(strict_errors_of(old, resource))
    errors = [error for error in errors if error not in before][:MAX_ERRORS]
    if errors and directive == STRICT:
        raise strict_patch_problem(encode_document(new).decode(), errors)
    return errors


def strict_problem(resource: Resource, errors: list[str]) -> Problem:
    """The refusal of an object whose fields are wrong."""
    told = ", ".join(errors)
    return problems.bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        f"{resource.kind}: strict decoding error: {told}"
    )


def strict_patch_problem(shown: str, errors: list[str]) -> Problem:
    """The refusal of a patch that leads to wrong fields; `shown` is what it leads to."""
    message = f"Invalid value: {go_quoted(shown)}: strict decoding error: {', '.join(errors)}"
    return problems.invalid("", "", [Cause("FieldValueInvalid", "patch", message)])


def warning_headers(warnings: list[str]) -> dict[str, str]:
    """The headers that hand warnings to a client."""
    told = ", ".join(f"299 - {go_quoted(warning)}" for warning in warnings)
    return {"Warning": told} if told else {}
