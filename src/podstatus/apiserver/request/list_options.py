"""The query parameters of lists and watches, parsed and validated.

Upstream: ValidateListOptions, pkg/apis/meta/internalversion/validation, apimachinery v0.36.4;
ValidateListOptions, pkg/storage/interfaces.go, apiserver v0.36.4.
"""

import re
from collections.abc import Mapping

import msgspec

from podstatus.apiserver.http.errors import StatusError, bad_request, invalid
from podstatus.apiserver.http.messages import require_int64
from podstatus.kube.validation.field_errors import FieldError, forbidden, unsupported

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"

_VERSION_MATCH = "resourceVersionMatch"
_SEND_INITIAL = "sendInitialEvents"
_VERSION = re.compile("[0-9]{1,19}")


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed parameters of a list."""

    version: int | None = None
    """The requested resource version or, unless `exact`, a newer one; None for the newest."""
    exact: bool = False
    """Whether the state of exactly this version is requested."""
    limit: int = 0
    token: str = ""


def parse_list_options(query: Mapping[str, str]) -> ListOptions:
    """Parse the parameters of a list. Raises StatusError (400 or 422)."""
    match, text, token = (
        query.get(_VERSION_MATCH, ""),
        query.get("resourceVersion", ""),
        _token(query),
    )
    causes = _validate_continue(match, token)
    if match and not text:
        causes.insert(
            0,
            forbidden(
                _VERSION_MATCH, f"{_VERSION_MATCH} is forbidden unless resourceVersion is provided"
            ),
        )
    if match not in ("", EXACT, NOT_OLDER_THAN):
        causes.append(unsupported(_VERSION_MATCH, match, [EXACT, NOT_OLDER_THAN, ""]))
    if match == EXACT and text == "0":
        why = f'{_VERSION_MATCH} "exact" is forbidden for resourceVersion "0"'
        causes.append(forbidden(_VERSION_MATCH, why))
    if _SEND_INITIAL in query:
        causes.append(forbidden(_SEND_INITIAL, f"{_SEND_INITIAL} is forbidden for list"))
    _raise_if_invalid(causes)
    version, limit = parse_resource_version(text), max(require_int64(query.get("limit", "0")), 0)
    if version and token:
        raise bad_request("specifying resource version is not allowed when using continue")
    if version == 0 and not token:
        # Any state will do: upstream sends all of its watch cache, regardless of the limit.
        return ListOptions(version=0)
    # A limit with a version but without resourceVersionMatch means Exact, for compatibility.
    exact = bool(version) and (match == EXACT or (bool(limit) and not match))
    return ListOptions(version=version, exact=exact, limit=limit, token=token)


def check_watch_options(query: Mapping[str, str]) -> None:
    """Raise StatusError (422) if the parameters of a watch contradict each other."""
    match, causes = query.get(_VERSION_MATCH, ""), []
    if _SEND_INITIAL in query and match != NOT_OLDER_THAN:
        why = f"{_SEND_INITIAL} requires setting {_VERSION_MATCH} to {NOT_OLDER_THAN}"
        causes.append(forbidden(_VERSION_MATCH, why))
    if match and _SEND_INITIAL not in query:
        why = f"{_VERSION_MATCH} is forbidden for watch unless {_SEND_INITIAL} is provided"
        causes.append(forbidden(_VERSION_MATCH, why))
    if match not in ("", NOT_OLDER_THAN):
        causes.append(unsupported(_VERSION_MATCH, match, [NOT_OLDER_THAN]))
    _raise_if_invalid(causes + _validate_continue(match, _token(query)))


def parse_resource_version(text: str) -> int | None:
    """Return the resource version, None if empty. Raises StatusError (400)."""
    if not text:
        return None
    if not _VERSION.fullmatch(text):
        raise StatusError(
            400, "BadRequest", f'resourceVersion: Invalid value: "{text[:40]}": not a number'
        )
    return int(text)


def too_large_resource_version(version: int, current: int) -> StatusError:
    """Return the error (504) for a resource version that is in the future."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
        },
        retry_after=1,
    )


def _token(query: Mapping[str, str]) -> str:
    return query.get("continue", "")


def _validate_continue(match: str, token: str) -> list[FieldError]:
    if match and token:
        return [
            forbidden(_VERSION_MATCH, f"{_VERSION_MATCH} is forbidden when continue is provided")
        ]
    return []


def _raise_if_invalid(causes: list[FieldError]) -> None:
    if causes:
        raise invalid("ListOptions", "", causes, group="meta.k8s.io")
