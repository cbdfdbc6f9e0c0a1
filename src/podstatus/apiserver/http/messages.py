"""Requests and responses as plain values, independent of aiohttp."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.protobuf import MEDIA_TYPE, decode_protobuf
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.go_text import go_quoted, parse_int64

JSON = "application/json"


def no_op() -> None:
    """Callback that does nothing: there is no connection, or nothing to close."""


_DECODER = msgspec.json.Decoder(float_hook=float)
"""Decodes a number beyond a float as infinity.

Harmless in an unknown field; in any other it is rejected with the name of the field.
"""
_INTEGER = re.compile("[+-]?[0-9]+")


def require_int64(text: str) -> int:
    """Parse a 64-bit integer. Raises StatusError (400)."""
    number = parse_int64(text)
    if number is None:
        why = "value out of range" if _INTEGER.fullmatch(text) else "invalid syntax"
        raise errors.bad_request(f"strconv.ParseInt: parsing {go_quoted(text[:40])}: {why}")
    return number


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a client, with its whole body."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = JSON
    content_type: str = ""
    user_agent: str = ""
    body: bytes = b""
    abort: Callable[[], None] = no_op
    """Aborts the connection, for a client that does not read its response."""
    is_disconnected: Callable[[], bool] = lambda: False
    """Whether the client has closed the connection, for streams that are idle."""
    raw_query: str = ""
    """The raw query string."""
    upgrade: str = ""
    """The Upgrade header: the protocol to switch to."""
    protocols: tuple[str, ...] = ()
    """The offered WebSocket subprotocols, the preferred one first."""

    def flag(self, name: str) -> bool:
        """Return a boolean parameter; as upstream, true unless `0` or `false`."""
        return self.query.get(name, "false").lower() not in ("0", "false")

    def number(self, name: str) -> int | None:
        """Return an integer parameter, None if absent or empty. Raises StatusError (400)."""
        value = self.query.get(name)
        if not value:
            return None
        return require_int64(value)

    def values(self, name: str) -> tuple[str, ...]:
        """Return all values of a repeated parameter."""
        pairs = parse_qsl(self.raw_query, keep_blank_values=True)
        return tuple(value for key, value in pairs if key == name)

    @property
    def is_protobuf(self) -> bool:
        return self.content_type.partition(";")[0].strip() == MEDIA_TYPE

    def document(self, what: str = "object") -> Document:
        """Decode the object in the body. Raises StatusError (400 or 415)."""
        if self.is_protobuf:
            return decode_protobuf(self.body)
        try:
            document = _DECODER.decode(self.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise errors.bad_request(f"the {what} provided is not valid JSON: {error}") from error
        if not isinstance(document, dict):
            raise errors.bad_request(f"the {what} provided is not a JSON object")
        return document


class Response(msgspec.Struct, frozen=True, kw_only=True):
    code: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}


class StreamResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response with a streamed body."""

    lines: AsyncGenerator[bytes, None]
    close: Callable[[], None] = no_op
    """Must be called when the stream is no longer needed, even if it was never read."""
    content_type: str = JSON
    code: int = 200


Message = bytes | str


class WebSocket(Protocol):
    """One end of a WebSocket connection."""

    async def receive(self) -> Message | None:
        """Return the next message; None after a close. Raises ConnectionError."""

    async def send(self, message: Message) -> None:
        """Send a message, with backpressure. Raises ConnectionError."""

    async def close(self, code: int, reason: bytes = b"") -> None:
        """Close the connection with this code."""

    @property
    def close_code(self) -> int | None:
        """The close code of the other end; None if it sent none."""


class WebSocketProxy(msgspec.Struct, frozen=True, kw_only=True):
    """A response that upgrades to a WebSocket and relays it to a backend."""

    protocol: str
    connect: Callable[[], Awaitable[WebSocket]]
    """Connects to the backend. Raises StatusError, which is sent over the WebSocket."""


class ConnectionDropped(msgspec.Struct, frozen=True):
    """Close the connection without a response."""


def json_response(document: Any, code: int = 200) -> Response:
    return Response(code=code, body=msgspec.json.encode(document))


def error_response(error: StatusError) -> Response:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return Response(code=error.code, body=msgspec.json.encode(error.document), headers=headers)
