"""Field validation of bodies: wrong types, unknown and duplicate fields, in upstream's words.

Wrong types are always rejected. Discovery declares support for `fieldValidation`, so kubectl leaves
unknown and duplicate fields to the server: Strict rejects them, Warn warns, Ignore does neither.
Unknown fields are dropped.

Upstream: apiserver v0.36.4, pkg/endpoints/handlers/create.go, patch.go and rest.go.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from podstatus.apiserver.http import errors as problems
from podstatus.apiserver.resources import ResourceInfo
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.patch.schema import Schema
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.validation.field_errors import invalid_value, unsupported
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
"""How much of a body an error message quotes."""
_MAX_QUOTED_CHARS: Final = 16 * 1024
"""How much of a patch an error response quotes, twice: a patch may have 3 MB."""


def check_types(body: bytes, schema: Schema, prefix: str = "") -> None:
    """Raise StatusError (400) unless the JSON body fits the type.

    `prefix` precedes the reason; see `decode_error_prefix` for objects.
    """
    if json_fits_schema(body, schema):
        return
    try:
        document = json.loads(
            body, object_pairs_hook=JsonMembers, parse_int=NumberLiteral, parse_float=NumberLiteral
        )
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None
    if message := unmarshal_error(document, schema):
        raise problems.bad_request(f"{prefix}{message}")


def check_kind(body: bytes, document: dict[str, Any], expected: str) -> None:
    """Raise StatusError (400) if the body's kind or apiVersion is not a string.

    Upstream: transformDecodeError and summarizeData, rest.go.
    """
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        if value is not None and not isinstance(value, str):
            start = body[:_MAX_SUMMARY_BYTES].decode(errors="replace")
            ellipsis = " ..." if len(body) > _MAX_SUMMARY_BYTES else ""
            raise problems.bad_request(
                f"the object provided is unrecognized (must be of type {expected}): couldn't get "
                f"version/kind; json parse error: json: cannot unmarshal {json_kind(value)} into "
                f"Go struct field .{key} of type string ({start}{ellipsis})"
            )


def decode_error_prefix(kind: str, version: str = "v1") -> str:
    """Return upstream's prefix of a decoding error."""
    return f'{kind} in version "{version}" cannot be handled as a {kind}: '


def check_patched_types(
    new: dict[str, Any], old: dict[str, Any], resource: ResourceInfo, describe: Callable[[], str]
) -> None:
    """Raise StatusError (422) if a patched object does not fit its type.

    `describe` returns the text to quote: the patch, or its result.
    """
    changed = _changed_fields(new, old)
    if value_fits_schema(changed, resource.schema):
        return
    if detail := unmarshal_error(changed, resource.schema):
        text = describe()
        text = text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]} ..."
        raise problems.invalid("", "", [invalid_value("patch", text, detail)])


def _changed_fields(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in new.items() if value is not old.get(key, _MISSING)}


def strict_errors(body: bytes, resource: ResourceInfo) -> list[str]:
    """Return the unknown and duplicate fields of a JSON object, in the order of the text.

    Raises StatusError (400) if it is nested too deeply.
    """
    try:
        # Keep numbers as text: they are not needed, and may be longer than Python converts.
        document = json.loads(body, object_pairs_hook=JsonMembers, parse_int=str, parse_float=str)
        return strict_field_errors(document, resource.schema)
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None


def strict_document_errors(document: dict[str, Any], resource: ResourceInfo) -> list[str]:
    """Return the unknown fields of a patched object.

    Raises StatusError (400) if it is nested too deeply.
    """
    try:
        return list(field_errors(document, resource.schema))
    except RecursionError:
        raise problems.bad_request("the object provided is nested too deeply") from None


def check_directive(directive: str, options: str) -> str:
    """Return the `fieldValidation` directive; the default is Warn. Raises StatusError (422).

    `options` is upstream's name of the parameters: CreateOptions, UpdateOptions, PatchOptions.
    """
    if directive not in _DIRECTIVES:
        cause = unsupported("fieldValidation", directive, _DIRECTIVES)
        raise problems.invalid(options, "", [cause], group="meta.k8s.io")
    return directive or WARN


def check_body(body: bytes, resource: ResourceInfo, directive: str) -> list[str]:
    """Return the warnings for a JSON body. Raises StatusError (400) if the directive is Strict."""
    errors = [] if directive == IGNORE else strict_errors(body, resource)
    if errors and directive == STRICT:
        prefix = decode_error_prefix(resource.kind, resource.version)
        raise problems.bad_request(f"{prefix}strict decoding error: {', '.join(errors)}")
    return errors


def check_patched(
    new: dict[str, Any], old: dict[str, Any], resource: ResourceInfo, directive: str
) -> list[str]:
    """Return the warnings for a patched object.

    Raises StatusError (422) if the directive is Strict. Fields that were unknown before the patch
    are not reported: unlike upstream, this server stores unknown fields.
    """
    changed = _changed_fields(new, old)
    if directive == IGNORE or not (errors := strict_document_errors(changed, resource)):
        return []
    before = frozenset(strict_document_errors(old, resource))
    errors = [error for error in errors if error not in before][:MAX_ERRORS]
    if errors and directive == STRICT:
        detail = f"strict decoding error: {', '.join(errors)}"
        cause = invalid_value("patch", encode_document(new).decode(), detail)
        raise problems.invalid("", "", [cause])
    return errors


def warning_headers(warnings: list[str]) -> dict[str, str]:
    """Return the Warning header with all warnings; empty without any."""
    value = ", ".join(f"299 - {go_quoted(warning)}" for warning in warnings)
    return {"Warning": value} if value else {}
