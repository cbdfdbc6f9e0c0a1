"""What is answered instead of what was asked for.

Refusal     the request is refused: with this code and this text, for whoever asked
"""

from http import HTTPStatus


class Refusal(Exception):  # noqa: N818 - not a fault of ours: an answer
    """A request that is not answered as it wants; the text says why and what to do."""

    def __init__(self, code: HTTPStatus, text: str, **headers: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def bad_request(text: str) -> Refusal:
    """The request itself makes no sense, or cannot be met as things are."""
    return Refusal(HTTPStatus.BAD_REQUEST, text)


def not_found(text: str) -> Refusal:
    """What it is about is not there."""
    return Refusal(HTTPStatus.NOT_FOUND, text)
