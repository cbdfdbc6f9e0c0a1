"""Convert error responses to `ApiError`."""

from collections.abc import Callable
from http import HTTPStatus

import msgspec
from msgspec import structs

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.api_errors import ApiError, ConflictError, api_error

_MAX_TEXT_LENGTH = 200
"""Characters of a response that is not a Status, such as a proxy's page: enough to recognise it."""
_MAX_MESSAGE_LENGTH = 4096
"""Characters of a Status message, which appears in logs, events and conditions."""
_MAX_REASON_LENGTH = 128
"""Characters. Upstream's reasons have at most 25."""

_MAX_RETRY_SECONDS = 3600.0

_UID = "metadata.uid"


class _Cause(msgspec.Struct, frozen=True):
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: float = 0
    causes: tuple[_Cause, ...] | None = None


class Status(msgspec.Struct, frozen=True):
    """The used fields of `metav1.Status`."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def retry_after(self) -> float | None:
        """Return the seconds to wait before a retry, or None."""
        return _bounded(self.details.retry_after_seconds) if self.details else None

    @property
    def rejected_fields(self) -> frozenset[str]:
        causes = self.details.causes if self.details else None
        return frozenset(cause.field for cause in causes or ())


def read_status(body: bytes, redact: Callable[[str], str] = str) -> Status:
    """Decode the Status of a response; for other content, a Status with the start of its text.

    `redact` removes secrets from the server's texts.
    """
    try:
        status = decode_json(body, Status)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        text = " ".join(body[: 4 * _MAX_TEXT_LENGTH].decode(errors="replace").split())
        return Status(message=redact(_truncate(text, _MAX_TEXT_LENGTH)))
    # Truncate first: `redact` also removes a truncated secret.
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
    """Return the error for a response: what was tried, the server's message, what to do."""
    text = status.message or _phrase(code)
    message = f"{action}: {text}" if status.reason else f"{action}: {code} {_phrase(code)}: {text}"
    message += _advice(code, source)
    if _UID in status.rejected_fields:
        # A patch with another UID. For the caller this is a failed precondition, although the
        # server reports the patched object as invalid (422) and not a conflict (409).
        return ConflictError(message, code=code, reason=status.reason)
    after = status.retry_after or _seconds(retry_after)
    return api_error(code, message, reason=status.reason, retry_after=after)


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return f"status {code}"


def _advice(code: int, source: str) -> str:
    if code == 401:
        return f"; the server did not accept the credentials: check the user of {source}"
    if code == 403:
        return f"; grant the permission to the user of {source} (RBAC), or use another context"
    if 300 <= code < 400:
        return f"; redirects are not followed: check the server of {source}"
    return ""


def _seconds(retry_after: str | None) -> float | None:
    """Parse Retry-After in seconds; API servers do not use its other form, a date."""
    is_number = retry_after is not None and len(retry_after) <= 9 and retry_after.isdecimal()
    return _bounded(float(retry_after or 0)) if is_number else None


def _bounded(seconds: float) -> float | None:
    """Return positive seconds, limited to one hour; otherwise None."""
    return min(seconds, _MAX_RETRY_SECONDS) if seconds > 0 else None
