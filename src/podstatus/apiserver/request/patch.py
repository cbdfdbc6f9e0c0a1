"""Patches by media type: JSON patch, merge patch (RFC 7386), strategic merge patch.

Upstream: pkg/endpoints/handlers/patch.go, apiserver v0.36.4; gopkg.in/evanphx/json-patch.v4,
merge.go v4.13.0. Unlike the RFC, a merge patch also removes nulls from objects in a list, if the
list replaces a value that is not an object.
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from podstatus.apiserver.http.errors import StatusError, bad_request, unsupported_media_type
from podstatus.apiserver.request.json_patch import (
    MAX_OPERATIONS,
    JsonPatchError,
    JsonPatchTooLargeError,
    apply_json_patch,
)
from podstatus.apiserver.resources import ResourceInfo
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.go_json import encode_document, go_format_v
from podstatus.kube.patch import PatchError, PatchFormatError, apply_patch


def apply_merge_patch(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return the merged document; neither argument is modified."""
    result = dict(document)
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = _merge_value(result.get(key), change)
    return result


def _merge_value(old: Any, change: Any) -> Any:
    if not isinstance(old, dict):
        return _strip_nulls(change)
    return apply_merge_patch(old, change) if isinstance(change, dict) else change


def _strip_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip_nulls(item) for key, item in value.items() if item is not None}
    return list(map(_strip_nulls, value)) if isinstance(value, list) else value


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Patcher = Callable[[Document, Any, ResourceInfo], Document]


def check_patch_type(content_type: str) -> None:
    """Raise StatusError (415) unless the patch type is supported."""
    _patcher(content_type)


def apply_patch_body(
    content_type: str, document: Document, body: bytes, resource: ResourceInfo
) -> Document:
    """Return the patched document. Raises StatusError (400, 413, 415 or 422)."""
    apply = _patcher(content_type)
    try:
        return apply(document, _decode(body, content_type), resource)
    except RecursionError:
        raise _unprocessable("the patch is nested too deeply") from None


def describe_patch(content_type: str, body: bytes, patched: Document) -> str:
    """Return the text that upstream quotes in a type error.

    This is a strategic merge patch itself; for other patches, their result.
    """
    try:
        if _media_type(content_type) == STRATEGIC_MERGE_PATCH:
            return go_format_v(_decode(body, content_type))
        return encode_document(patched).decode()
    except RecursionError:
        return "(nested too deeply)"


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def _patcher(content_type: str) -> Patcher:
    media_type = _media_type(content_type)
    if media_type in _PATCHERS:
        return _PATCHERS[media_type]
    if media_type == APPLY_PATCH:
        raise unsupported_media_type(
            "this server does not support server-side apply; use client-side apply (kubectl apply "
            f"--server-side=false), or send one of {', '.join(_PATCHERS)}"
        )
    raise unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(_PATCHERS)
    )


def _decode(body: bytes, content_type: str) -> Any:
    is_strategic = _media_type(content_type) == STRATEGIC_MERGE_PATCH
    decoder = _STRATEGIC_DECODER if is_strategic else _DECODER
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error


def _strategic_number(text: str) -> float:
    """Decode a number: 1e3 or 30.0 is an integer in a strategic merge patch, unlike in others.

    Upstream: fromUnstructured, pkg/runtime/converter.go, apimachinery v0.36.4.
    """
    number = float(text)
    if math.isinf(number):
        why = f"json: cannot unmarshal number {text[:80]} into Go value of type float64"
        raise bad_request(why)
    return int(number) if number.is_integer() and abs(number) < _INT64 else number


_INT64 = 2.0**63
_DECODER = msgspec.json.Decoder()
_STRATEGIC_DECODER = msgspec.json.Decoder(float_hook=_strategic_number)


def _json_patch(document: Document, patch: Any, _: ResourceInfo) -> Document:
    if patch is None:
        return document
    if not isinstance(patch, list) or not all(map(_is_operation, patch)):
        raise bad_request("error decoding patch: expected a list of operations")
    if len(patch) > MAX_OPERATIONS:
        raise _patch_too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        )
    try:
        patched = apply_json_patch(document, patch)
    except JsonPatchTooLargeError as error:
        raise _patch_too_large(str(error)) from error
    except JsonPatchError as error:
        raise _unprocessable(str(error)) from error
    if not isinstance(patched, dict):
        raise _unprocessable("the result of the patch is not an object")
    return patched


def _is_operation(operation: Any) -> bool:
    if operation is None:
        return True
    if not isinstance(operation, dict):
        return False
    texts = (operation.get(name) for name in ("op", "path", "from"))
    return all(text is None or isinstance(text, str) for text in texts)


def _merge_patch(document: Document, patch: Any, _: ResourceInfo) -> Document:
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    return apply_merge_patch(document, _require_object(patch))


def _strategic_merge_patch(document: Document, patch: Any, resource: ResourceInfo) -> Document:
    try:
        return apply_patch(
            document, _require_object({} if patch is None else patch), resource.schema
        )
    except PatchFormatError as error:
        raise bad_request(str(error)) from error
    except PatchError as error:
        # Upstream returns 500 here, but an invalid patch is a client error.
        raise _unprocessable(str(error)) from error


def _require_object(patch: Any) -> dict[str, Any]:
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: expected an object, got {type(patch).__name__}")
    return patch


def _patch_too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def _unprocessable(detail: str) -> StatusError:
    """Upstream does not report the reason; here it is added as a cause, which kubectl prints."""
    cause = {"reason": "FieldValueInvalid", "message": detail, "field": "patch"}
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {"causes": [cause]})


_PATCHERS: dict[str, Patcher] = {
    JSON_PATCH: _json_patch,
    MERGE_PATCH: _merge_patch,
    STRATEGIC_MERGE_PATCH: _strategic_merge_patch,
}
