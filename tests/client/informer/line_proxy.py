"""Stands between a client and a server, and does to watches what no server does.

One request per connection, GET only. Streams can be cut in the middle of an event, fall silent,
or, after a resume, be mixed with lines that were sent before, in any order.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.client.raw_server import chunk

MAX_REMEMBERED = 60


class _Stream:
    """A watch that passes through the proxy."""

    def __init__(self, writer: asyncio.StreamWriter, *, mixed: int) -> None:
        self.writer = writer
        self.mixed = mixed
        """Number of lines that are still to be shuffled."""
        self.held: list[bytes] = []
        self.is_stalled = False
        self.is_to_be_cut = False


class LineProxy:
    """A proxy for a local port, which may change; `serve` handles a connection."""

    def __init__(self, upstream: int, chance: random.Random) -> None:
        self.upstream = upstream
        self._chance = chance
        self._streams: set[_Stream] = set()
        self._sent: list[bytes] = []
        self._mixed = 0

    def cut(self) -> None:
        """Cut every stream in the middle of its next line."""
        for stream in self._streams:
            stream.is_to_be_cut = True

    def hang_up(self) -> None:
        """Close every stream now."""
        for stream in self._streams:
            stream.writer.transport.abort()

    def stall(self) -> None:
        """Silence every stream."""
        for stream in self._streams:
            stream.is_stalled = True

    def mix(self, lines: int) -> None:
        """Let new streams repeat and reorder their first lines."""
        self._mixed = lines

    def heal(self) -> None:
        """Let new streams be correct."""
        self._mixed = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            async with _connected(self.upstream) as (answers, questions):
                questions.write(head[:-2] + b"Connection: close\r\n\r\n")
                answer = await answers.readuntil(b"\r\n\r\n")
                writer.write(answer)
                if b"watch=1" in head.partition(b"\r\n")[0] and b"chunked" in answer.lower():
                    await self._pass_on(answers, writer)
                else:
                    writer.write(await answers.read())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _pass_on(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = _Stream(writer, mixed=self._mixed)
        self._streams.add(stream)
        try:
            async for line in _lines(answers):
                for sent in self._block(stream, line):
                    await _send(stream, sent)
            writer.write(chunk(b""))
        finally:
            self._streams.discard(stream)

    def _block(self, stream: _Stream, line: bytes) -> list[bytes]:
        """Return the lines to send for an incoming one: none yet, or several with repetitions.

        No line is held back for long: bookmarks arrive all the time.
        """
        stream.held.append(line)
        if stream.mixed:
            stream.mixed -= 1
            if self._chance.random() < 0.7:
                return []
            again = self._chance.sample(self._sent, min(len(self._sent), 8))
            block = self._chance.sample(stream.held + again, len(stream.held + again))
        else:
            block = stream.held
        self._sent = (self._sent + stream.held)[-MAX_REMEMBERED:]
        stream.held = []
        return block


async def _send(stream: _Stream, line: bytes) -> None:
    if stream.is_stalled:
        await asyncio.Event().wait()
    if stream.is_to_be_cut:
        stream.writer.write(chunk(line[: len(line) // 2]))
        await stream.writer.drain()
        stream.writer.transport.abort()
        raise ConnectionAbortedError
    stream.writer.write(chunk(line))
    await stream.writer.drain()


async def _lines(answers: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a chunked body. Raises IncompleteReadError if it is cut."""
    rest = b""
    while size := int(await answers.readline() or b"0", 16):
        *lines, rest = (rest + await answers.readexactly(size)).split(b"\n")
        await answers.readexactly(2)
        for line in lines:
            yield line + b"\n"


@asynccontextmanager
async def _connected(
    port: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
