"""What is answered instead of what was asked for.

Refusal     the request is refused: with this code and this text, for whoever asked
"""

from http import HTTPStatus

import msgspec

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Server": "podstatus",
}
"""Headers of every answer: it is what it says, nobody keeps it, and what made it is not told."""


class HttpError(Exception):
    """A request that is not answered as it wants; the text says why and what to do."""

    def __init__(self, code: HTTPStatus, text: str, **headers: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def bad_request(text: str) -> HttpError:
    """The request itself makes no sense, or cannot be met as things are."""
    return HttpError(HTTPStatus.BAD_REQUEST, text)


def not_found(text: str) -> HttpError:
    """What it is about is not there."""
    return HttpError(HTTPStatus.NOT_FOUND, text)


def too_long(text: str) -> HttpError:
    """More is asked for than anybody needs."""
    return HttpError(HTTPStatus.REQUEST_URI_TOO_LONG, text)


def unavailable(text: str) -> HttpError:
    """It cannot be answered now, and perhaps later."""
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, text, **{"Retry-After": "1"})


def error_document(code: HTTPStatus, text: str) -> str:
    """The same in JSON, in the form of a `v1.Status`."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "".join(word.capitalize() for word in code.name.split("_")),
        "message": text,
        "code": int(code),
    }
    return msgspec.json.encode(status).decode() + "\n"
