"""A server that says on a socket exactly what a test wants it to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Say = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(
    say: Say, *, tls: ssl.SSLContext | None = None, greets: bool = False
) -> AsyncIterator[str]:
    """Yield the URL of a server; `say` handles connections, after a request unless it `greets`."""
    open_ones: set[asyncio.Task[None]] = set()

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

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        open_ones.add(task)
        task.add_done_callback(open_ones.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    finally:
        server.close()
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)


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
