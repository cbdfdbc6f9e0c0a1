"""What an API server can answer instead of an object, classed by what a caller may do.

ApiError
├── GoneError          the object is not there: forget it
├── ConflictError      it changed under us, or a precondition failed: read again
├── BusyError          come back later, after `retry_after` seconds if given
├── UnavailableError   the server or the way to it is broken: back off, likewise
└── RejectedError      the request itself is refused: sending it again will not help
    └── DeniedError    not what is asked, but who asks: it may be allowed later

What is done about each is the policy's business; upstream's tries again with the next batch.
"""


class ApiError(Exception):
    """A call to the API server failed."""

    def __init__(
        self, message: str, *, code: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        """HTTP status, or 0 when there was no answer."""
        self.reason = reason
        """The `reason` of the Status object, if there was one."""
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again, if it said so."""


class GoneError(ApiError):
    """The object does not exist (404, 410)."""


class ConflictError(ApiError):
    """The object changed, exists already, or is not the one the precondition names (409)."""


class BusyError(ApiError):
    """The server asks for patience (429)."""


class UnavailableError(ApiError):
    """The server failed, or could not be reached (5xx, no answer)."""


class RejectedError(ApiError):
    """The server understood and said no (other 4xx)."""


class DeniedError(RejectedError):
    """The server does not know us, or does not let us (401, 403)."""


def api_error(
    code: int, message: str, *, reason: str = "", retry_after: float | None = None
) -> ApiError:
    """The error of the tree that stands for this HTTP status."""
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
