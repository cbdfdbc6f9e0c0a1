"""HTTP errors that handlers raise and the server turns into responses.

HttpError     the request is rejected with a status code and a text for the client
"""

from http import HTTPStatus

import msgspec

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Server": "podstatus",
}
"""Headers of every response: no MIME sniffing, no caching, no version of the server software."""


class HttpError(Exception):
    """An error response; the text says what is wrong and what to do."""

    def __init__(self, code: HTTPStatus, text: str, **headers: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def bad_request(text: str) -> HttpError:
    """400: the request is invalid, or cannot be served in the current state."""
    return HttpError(HTTPStatus.BAD_REQUEST, text)


def not_found(text: str) -> HttpError:
    """404: the object or path does not exist."""
    return HttpError(HTTPStatus.NOT_FOUND, text)


def too_long(text: str) -> HttpError:
    """414: the query is longer than any valid one."""
    return HttpError(HTTPStatus.REQUEST_URI_TOO_LONG, text)


def unavailable(text: str) -> HttpError:
    """503 with Retry-After: a later attempt may succeed."""
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, text, **{"Retry-After": "1"})


def error_document(code: HTTPStatus, text: str) -> str:
    """The error as a `v1.Status` in JSON, with a final newline."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "".join(word.capitalize() for word in code.name.split("_")),
        "message": text,
        "code": int(code),
    }
    return msgspec.json.encode(status).decode() + "\n"
