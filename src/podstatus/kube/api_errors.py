"""Errors of API requests, classed by what the caller can do.

ApiError
├── GoneError          the object does not exist: forget it
├── ConflictError      the object changed, or a precondition failed: read it again
├── BusyError          the server is overloaded: retry, after `retry_after` seconds if set
├── UnavailableError   the server or the network failed: back off and retry
└── RejectedError      the request is invalid: do not send it again
    └── DeniedError    the client is not authenticated or not authorized: may change later

The sync policy decides what is done; upstream's retries with the next batch.
"""


class ApiError(Exception):
    """A call to the API server failed."""

    def __init__(
        self, message: str, *, code: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        """HTTP status, or 0 if there was no response."""
        self.reason = reason
        """The `reason` of the Status object, empty if there was none."""
        self.retry_after = retry_after
        """Seconds after which to retry, if the server sent Retry-After."""


class GoneError(ApiError):
    """The object does not exist (404, 410)."""


class ConflictError(ApiError):
    """The object changed, exists already, or is not the one the precondition names (409)."""


class BusyError(ApiError):
    """The server is overloaded or limits the request rate (429)."""


class UnavailableError(ApiError):
    """The server failed or could not be reached (5xx, no response)."""


class RejectedError(ApiError):
    """The server rejected the request as invalid (other 4xx)."""


class DeniedError(RejectedError):
    """The client is not authenticated or not authorized (401, 403)."""


def api_error(
    code: int, message: str, *, reason: str = "", retry_after: float | None = None
) -> ApiError:
    """Return the error for an HTTP status."""
    return _error_class(code)(message, code=code, reason=reason, retry_after=retry_after)


def _error_class(code: int) -> type[ApiError]:
    if code == 429:
        return BusyError
    if code in (404, 410):
        return GoneError
    if code == 409:
        return ConflictError
    if code in (401, 403):
        return DeniedError
    return RejectedError if 400 <= code < 500 else UnavailableError
