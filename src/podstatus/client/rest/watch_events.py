"""Decode the events of a watch, line by line."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec

from podstatus.client.rest.status_error import read_status, status_error
from podstatus.kube.api_errors import ApiError, UnavailableError

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
"""The object has only a resource version: all changes up to it have been sent."""
ERROR = "ERROR"
"""The object is a Status with the reason for the end of the watch. The client raises it."""


class WatchEvent(msgspec.Struct, frozen=True):
    """A watch event: the type, and the object as the server sent it."""

    type: str
    object: bytes
    """The object as JSON text."""


MAX_EVENT_BYTES = 16 << 20
"""Maximum size of one event. etcd stores objects of a few megabytes at most."""


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(_Line)


class Chunks(Protocol):
    """A response body that is read as it arrives."""

    async def read(self) -> bytes:
        """Wait for data and return it; empty at the end of the body. Raises ApiError."""


class WatchStream(AsyncIterator[WatchEvent]):
    """Iterates over the events of one watch, until the server ends it.

    Raises UnavailableError if the stream was cut or idle, and the error for the Status of an ERROR
    event (GoneError: the resource version is too old).
    """

    def __init__(
        self, chunks: Chunks, action: str, source: str, redact: Callable[[str], str] = str
    ) -> None:
        self._chunks = chunks
        self._action = action
        self._source = source
        self._redact = redact
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        """The start of an incomplete line. Grown in place: a line may arrive byte by byte."""

    def __aiter__(self) -> "WatchStream":
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._lines:
            await self._read_chunk()
        event = self._read_event(self._lines.popleft())
        if event.type == ERROR:
            raise self._error_event(event)
        return event

    async def _read_chunk(self) -> None:
        chunk = await self._chunks.read()
        if not chunk:
            if self._rest:
                raise UnavailableError(
                    f"{self._action}: the stream was cut in the middle of an event"
                )
            raise StopAsyncIteration
        self._split_lines(chunk)

    def _split_lines(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._rest += first
        if len(self._rest) > MAX_EVENT_BYTES:
            raise UnavailableError(
                f"{self._action}: an event is longer than {MAX_EVENT_BYTES >> 20} MiB"
            )
        if others:
            lines = [bytes(self._rest), *others[:-1]]
            self._rest = bytearray(others[-1])
            self._lines.extend(line for line in lines if line)

    def _read_event(self, line: bytes) -> WatchEvent:
        try:
            event = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UnavailableError(f"{self._action}: invalid watch event: {error}") from error
        return WatchEvent(event.type, bytes(event.object))

    def _error_event(self, event: WatchEvent) -> ApiError:
        status = read_status(event.object, self._redact)
        return status_error(self._action, self._source, status.code or 500, status)
