"""A server that says on a socket exactly what a test wants it to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.loopback_servers import serving

Say = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(
    say: Say, *, tls: ssl.SSLContext | None = None, greets: bool = False
) -> AsyncIterator[str]:
    """Yield the URL of a server; `say` handles connections, after a request unless it `greets`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not greets:
                await reader.readuntil(b"\r\n\r\n")
            await say(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with serving(serve, tls=tls) as port:
        yield f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"


async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Send nothing until the client closes the connection."""
    await reader.read()


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close the connection."""
    writer.close()


def answer(body: bytes, code: str = "200 OK", *headers: str) -> bytes:
    """Return a complete response."""
    head = [f"HTTP/1.1 {code}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def chunked_head() -> bytes:
    """Return the head of a chunked response."""
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return one chunk; an empty one is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)
