"""One request and its answer, as the HTTP layer hands them over: nothing of aiohttp in them."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.protobuf import MEDIA_TYPE, decode_protobuf
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.go_text import go_quoted

JSON = "application/json"


def _no_abort() -> None:
    """There is no connection to break."""


def _always_connected() -> bool:
    """There is no connection that could be gone."""
    return False


_DECODER = msgspec.json.Decoder(float_hook=float)
"""A number beyond a float is infinite: in an unknown field it does no harm, in others it fits no
type, which is said with the field."""
_INTEGER = re.compile("[+-]?[0-9]+")
_MAX_INT64 = 2**63 - 1


def parse_int64(text: str) -> int:
    """A whole number of 64 bits. Raises Problem."""
    why = "invalid syntax"
    if _INTEGER.fullmatch(text):
        number = int(text) if len(text) < 64 else _MAX_INT64 + 1
        if -_MAX_INT64 <= number <= _MAX_INT64:
            return number
        why = "value out of range"
    raise errors.bad_request(f"strconv.ParseInt: parsing {go_quoted(text[:40])}: {why}")


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = JSON
    content_type: str = ""
    user_agent: str = ""
    body: bytes = b""
    abort: Callable[[], None] = _no_abort
    """Breaks the connection, for one that does not read its answer."""
    is_disconnected: Callable[[], bool] = _always_connected
    """Whether the client has hung up, for those who have had nothing to tell it for a while."""
    raw_query: str = ""
    """The query as it was sent."""
    upgrade: str = ""
    """Which protocol the client wants to go on with."""
    protocols: tuple[str, ...] = ()
    """What it would speak over a WebSocket, the best first."""

    def flag(self, name: str) -> bool:
        """A parameter that is on or off: as upstream reads it, on unless it says no."""
        return self.query.get(name, "false").lower() not in ("0", "false")

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number. Raises Problem."""
        value = self.query.get(name)
        if not value:
            return None
        return parse_int64(value)

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be given more than once."""
        pairs = parse_qsl(self.raw_query, keep_blank_values=True)
        return tuple(value for key, value in pairs if key == name)

    @property
    def is_protobuf(self) -> bool:
        """Whether the body is protobuf, not JSON."""
        return self.content_type.partition(";")[0].strip() == MEDIA_TYPE

    def document(self, what: str = "object") -> Document:
        """The object in the body. Raises Problem."""
        if self.is_protobuf:
            return decode_protobuf(self.body)
        try:
            document = _DECODER.decode(self.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise errors.bad_request(f"the {what} provided is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise errors.bad_request(f"the {what} provided is no JSON object")
        return document


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    code: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}


class StreamResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that goes on: lines, until it ends."""

    lines: AsyncGenerator[bytes, None]
    close: Callable[[], None]
    """To be called when nothing more is wanted, even if nothing ever was."""
    content_type: str = JSON
    code: int = 200


Message = bytes | str


class WebSocket(Protocol):
    """One end of a WebSocket."""

    async def receive(self) -> Message | None:
        """The next message; None when the other end has had enough. Raises ConnectionError."""

    async def send(self, message: Message) -> None:
        """Hand over a message, as fast as it is taken. Raises ConnectionError."""

    async def close(self, code: int, reason: bytes = b"") -> None:
        """Say goodbye."""

    @property
    def close_code(self) -> int | None:
        """What the other end said when it left; None if it did not say anything."""


class WebSocketProxy(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is a WebSocket: its messages go to somebody else, and theirs come back."""

    protocol: str
    connect: Callable[[], Awaitable[WebSocket]]
    """Reaches the other one. Raises Problem, which the client is told in words of the protocol."""


class ConnectionDropped(msgspec.Struct, frozen=True):
    """No answer: the connection is dropped."""


def json_response(document: Any, code: int = 200) -> Response:
    """A document as an answer."""
    return Response(code=code, body=msgspec.json.encode(document))


def error_response(error: StatusError) -> Response:
    """A problem as an answer."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return Response(code=error.code, body=msgspec.json.encode(error.document), headers=headers)
