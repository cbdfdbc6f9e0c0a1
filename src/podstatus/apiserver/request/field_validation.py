"""Which fields of a body do not fit their Go types, are unknown or given twice, as kube-apiserver
says it.

What does not fit is refused. For the rest, discovery says that we take `fieldValidation`, so
kubectl leaves it to us: Strict refuses, Warn warns, Ignore keeps silent. Unknown fields are
dropped.

Upstream: apiserver v0.36.4, pkg/endpoints/handlers/create.go, patch.go and rest.go.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from podstatus.apiserver.http import errors as problems
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.resources import ResourceInfo
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.patch.schema import Schema
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.validation.field_errors import FieldError
from podstatus.kube.validation.strict_fields import (
    MAX_ERRORS,
    JsonMembers,
    field_errors,
    strict_field_errors,
)
from podstatus.kube.validation.unmarshal import (
    NumberLiteral,
    json_fits_schema,
    json_kind,
    unmarshal_error,
    value_fits_schema,
)

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"

_DIRECTIVES: Final = ("", IGNORE, STRICT, WARN)
_MISSING: Final = object()
_MAX_SUMMARY_BYTES: Final = 30
"""How much of a body is repeated, in bytes."""
_MAX_QUOTED_CHARS: Final = 16 * 1024
"""How much of a patch is repeated, in characters, twice in an answer: a patch may have 3 MB."""


def check_types(body: bytes, schema: Schema, prefix: str = "") -> None:
    """Raise Problem if the body, which is JSON, does not fit the type.

    `prefix` is put before the reason; `decode_error_prefix` has the words for objects.
    """
    if json_fits_schema(body, schema):
        return
    try:
        read = json.loads(
            body, object_pairs_hook=JsonMembers, parse_int=NumberLiteral, parse_float=NumberLiteral
        )
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None
    if wrong := unmarshal_error(read, schema):
        raise problems.bad_request(f"{prefix}{wrong}")


def check_kind(body: bytes, document: dict[str, Any], expected: str) -> None:
    """Raise Problem if the kind or the version in a body is no text.

    Upstream: transformDecodeError and summarizeData, rest.go.
    """
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        if value is not None and not isinstance(value, str):
            start = body[:_MAX_SUMMARY_BYTES].decode(errors="replace")
            more = " ..." if len(body) > _MAX_SUMMARY_BYTES else ""
            raise problems.bad_request(
                f"the object provided is unrecognized (must be of type {expected}): couldn't get "
                f"version/kind; json parse error: json: cannot unmarshal {json_kind(value)} into "
                f"Go struct field .{key} of type string ({start}{more})"
            )


def decode_error_prefix(kind: str, version: str = "v1") -> str:
    """What comes before the reason why an object cannot be decoded."""
    return f'{kind} in version "{version}" cannot be handled as a {kind}: '


def check_patched_types(
    new: dict[str, Any], old: dict[str, Any], resource: ResourceInfo, describe: Callable[[], str]
) -> None:
    """Raise Problem if a patch made something of an object that does not fit its type.

    `describe` is what is repeated in the reason: the patch, or what it leads to.
    """
    touched = _changed_fields(new, old)
    if value_fits_schema(touched, resource.schema):
        return
    if wrong := unmarshal_error(touched, resource.schema):
        text = describe()
        text = text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]} ..."
        message = f"Invalid value: {go_quoted(text)}: {wrong}"
        raise problems.invalid("", "", [FieldError("FieldValueInvalid", "patch", message)])


def _changed_fields(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in new.items() if value is not old.get(key, _MISSING)}


def strict_errors(body: bytes, resource: ResourceInfo) -> list[str]:
    """What is wrong with the fields of an object, in the order of the text, which is JSON.

    Raises Problem if it is nested too deeply.
    """
    try:
        # Numbers stay text: they are not looked at, and may be longer than Python reads.
        read = json.loads(body, object_pairs_hook=JsonMembers, parse_int=str, parse_float=str)
        return strict_field_errors(read, resource.schema)
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None


def strict_document_errors(document: dict[str, Any], resource: ResourceInfo) -> list[str]:
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
        cause = FieldError("FieldValueNotSupported", "fieldValidation", message)
        raise problems.invalid(options, "", [cause], group="meta.k8s.io")
    return directive or WARN


def check_body(body: bytes, resource: ResourceInfo, directive: str) -> list[str]:
    """The warnings about a body, which is JSON. Raises Problem if it is to be strict."""
    errors = [] if directive == IGNORE else strict_errors(body, resource)
    if errors and directive == STRICT:
        raise strict_decoding_error(resource, errors)
    return errors


def check_patched(
    new: dict[str, Any], old: dict[str, Any], resource: ResourceInfo, directive: str
) -> list[str]:
    """The warnings about what a patch made of an object. Raises Problem if it is to be strict.

    What was there before is nobody's mistake now: we store what nobody knows, upstream does not.
    """
    touched = _changed_fields(new, old)
    if directive == IGNORE or not (errors := strict_document_errors(touched, resource)):
        return []
    before = frozenset(strict_document_errors(old, resource))
    errors = [error for error in errors if error not in before][:MAX_ERRORS]
    if errors and directive == STRICT:
        raise strict_patch_error(encode_document(new).decode(), errors)
    return errors


def strict_decoding_error(resource: ResourceInfo, errors: list[str]) -> StatusError:
    """The refusal of an object whose fields are wrong."""
    told = ", ".join(errors)
    what = decode_error_prefix(resource.kind, resource.version)
    return problems.bad_request(f"{what}strict decoding error: {told}")


def strict_patch_error(patched_text: str, errors: list[str]) -> StatusError:
    """The refusal of a patch that leads to wrong fields; `patched_text` is what it leads to."""
    message = (
        f"Invalid value: {go_quoted(patched_text)}: strict decoding error: {', '.join(errors)}"
    )
    return problems.invalid("", "", [FieldError("FieldValueInvalid", "patch", message)])


def warning_headers(warnings: list[str]) -> dict[str, str]:
    """The headers that hand warnings to a client."""
    told = ", ".join(f"299 - {go_quoted(warning)}" for warning in warnings)
    return {"Warning": told} if told else {}
