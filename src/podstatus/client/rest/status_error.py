"""What a server said instead of doing it."""

from collections.abc import Callable
from http import HTTPStatus

import msgspec
from msgspec import structs

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.errors import ApiError, ConflictError, api_error

_MAX_TEXT_LENGTH = 200
"""Characters of an answer that is no Status, a proxy's page perhaps: enough to recognise it."""
_MAX_MESSAGE_LENGTH = 4096
"""Characters of the message of a Status. It goes into logs, events and conditions."""
_MAX_REASON_LENGTH = 128
"""Upstream's have 25 at most."""

_MAX_RETRY_SECONDS = 3600.0

_UID = "metadata.uid"


class _Cause(msgspec.Struct, frozen=True):
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: float = 0
    causes: tuple[_Cause, ...] | None = None


class Status(msgspec.Struct, frozen=True):
    """`metav1.Status`, as far as we look at it."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def retry_after(self) -> float | None:
        """Seconds after which to ask again, if it says so."""
        return _bounded(self.details.retry_after_seconds) if self.details else None

    @property
    def rejected_fields(self) -> frozenset[str]:
        """The fields of the object that were not accepted."""
        causes = self.details.causes if self.details else None
        return frozenset(cause.field for cause in causes or ())


def read_status(body: bytes, redact: Callable[[str], str] = str) -> Status:
    """The Status in an answer; one with the beginning of its text if there is none.

    `redact` leaves out what must not be shown of the server's words.
    """
    try:
        status = decode_json(body, Status)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        text = " ".join(body[: 4 * _MAX_TEXT_LENGTH].decode(errors="replace").split())
        return Status(message=redact(_truncate(text, _MAX_TEXT_LENGTH)))
    # Cut first: what is cut through is left out all the same.
    return structs.replace(
        status,
        reason=redact(_truncate(status.reason, _MAX_REASON_LENGTH)),
        message=redact(_truncate(status.message, _MAX_MESSAGE_LENGTH)),
    )


def _truncate(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else text[:max_length] + "…"


def status_error(
    action: str, source: str, code: int, status: Status, retry_after: str | None = None
) -> ApiError:
    """The error for an answer: what was tried, what the server said, what to do."""
    what = status.message or _phrase(code)
    told = f"{action}: {what}" if status.reason else f"{action}: {code} {_phrase(code)}: {what}"
    told += _advice(code, source)
    if _UID in status.rejected_fields:
        # A patch that names another UID: to the caller what a failed precondition is, though
        # the server finds the patched object invalid (422), not the precondition failed (409).
        return ConflictError(told, code=code, reason=status.reason)
    after = status.retry_after or _seconds(retry_after)
    return api_error(code, told, reason=status.reason, retry_after=after)


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return f"status {code}"


def _advice(code: int, source: str) -> str:
    if code == 401:
        return f"; the server does not accept who we are: check the user of {source}"
    if code == 403:
        return f"; have the right given to the user of {source} (RBAC), or use another context"
    if 300 <= code < 400:
        return f"; redirects are not followed: check the server of {source}"
    return ""


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds; its other form, a date, is not used by API servers."""
    is_number = retry_after is not None and len(retry_after) <= 9 and retry_after.isdecimal()
    return _bounded(float(retry_after or 0)) if is_number else None


def _bounded(seconds: float) -> float | None:
    """Seconds to wait, if these are some; a server that asks for a year gets an hour."""
    return min(seconds, _MAX_RETRY_SECONDS) if seconds > 0 else None
