"""Stream container logs and the agent's own log files, at the pace of the client.

The agent's own logs are the regular files of one directory; symbolic links are not followed.
`list_logs` and `open_log` block on the disk: call them in a thread.
"""

import asyncio
import html
import logging
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from aiohttp import web

from podstatus.runtime.streams import StreamUnavailableError
from podstatus.web.errors import bad_request, not_found
from podstatus.web.kubelet.idle_timeout import IdleTimeout

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: opening a named pipe without a writer would block for ever.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def list_logs(directory: Path) -> str:
    """An HTML page with links to the files, as upstream's file server returns it."""
    with _open_directory(directory) as descriptor:
        entries = sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor is not a path
        names = [name for name in entries if _is_file(descriptor, name)]
    links = (f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    return f"<pre>\n{''.join(links)}</pre>\n"


def open_log(directory: Path, name: str) -> tuple[BinaryIO, int]:
    """An open file and its current size. Raises HttpError if there is no such file."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise _log_not_found(name)
    with _open_directory(directory) as descriptor:
        try:
            file = os.open(name, _FILE_FLAGS, dir_fd=descriptor)
        except OSError as error:
            raise _log_not_found(name) from error
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise _log_not_found(name)
    return os.fdopen(file, "rb"), status.st_size


@contextmanager
def _open_directory(directory: Path) -> Iterator[int]:
    try:
        descriptor = os.open(directory, _DIRECTORY_FLAGS)
    except OSError as error:
        raise not_found("404 page not found: the agent has no log directory") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_file(directory: int, name: str) -> bool:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and not name.startswith(".")


def _log_not_found(name: str) -> Exception:
    return not_found(f"404 page not found: no log {name[:80]!a}; /logs/ lists the names")


logger = logging.getLogger(__name__)

_PLAIN = {"Content-Type": "text/plain", "X-Content-Type-Options": "nosniff"}
_CHUNK_BYTES = 64 * 2**10
_FIRST_CHUNK_SECONDS = 0.5


async def send_container_log(
    request: web.BaseRequest, chunks: AsyncIterator[bytes], idle: IdleTimeout, *, follow: bool
) -> web.StreamResponse:
    """Stream a container's log. Raises HttpError if there is none.

    The idle timeout applies to a client that does not read, not to a followed log without output.
    """
    response = web.StreamResponse(headers=_PLAIN)
    first = asyncio.ensure_future(anext(chunks, None))
    try:
        # A followed log may have no output for long; the client gets the headers meanwhile.
        await asyncio.wait([first], timeout=_FIRST_CHUNK_SECONDS if follow else None)
        if first.done():
            first.result()
        await response.prepare(request)
        chunk = await first
        while chunk is not None:
            await _write(response, chunk, idle)
            chunk = await anext(chunks, None)
        await response.write_eof()
    except StreamUnavailableError as error:
        if not response.prepared:
            raise bad_request(str(error)) from error
        logger.info("container log stream failed: path=%s error=%s", request.path, error)
        _abort_connection(request)
    except (ConnectionError, TimeoutError) as error:
        logger.debug("container log client disconnected: path=%s error=%r", request.path, error)
        _abort_connection(request)
    finally:
        await _close_reader(first, chunks)
    return response


async def send_agent_log(
    request: web.BaseRequest, directory: Path, name: str, idle: IdleTimeout
) -> web.StreamResponse:
    """Send a log file of the agent up to its current size. Raises HttpError if there is none."""
    file, size = await asyncio.to_thread(open_log, directory, name)
    with file:
        response = web.StreamResponse(headers=_PLAIN)
        response.content_length = size
        try:
            await response.prepare(request)
            await _send_file(response, file, size, idle)
            await response.write_eof()
        except (OSError, TimeoutError) as error:
            logger.debug("cannot send the agent log completely: file=%s error=%r", name, error)
            _abort_connection(request)
    return response


async def _send_file(
    response: web.StreamResponse, file: BinaryIO, size: int, idle: IdleTimeout
) -> None:
    while size > 0:
        chunk = await asyncio.to_thread(file.read, min(_CHUNK_BYTES, size))
        if not chunk:
            raise ConnectionError("the file was truncated while it was sent")
        size -= len(chunk)
        await _write(response, chunk, idle)


async def _write(response: web.StreamResponse, chunk: bytes, idle: IdleTimeout) -> None:
    async with asyncio.timeout(idle.seconds or None):
        await response.write(chunk)


async def _close_reader(
    first: "asyncio.Future[bytes | None]", chunks: AsyncIterator[bytes]
) -> None:
    """Stop reading, and close the runtime's iterator."""
    first.cancel()
    await asyncio.wait([first])
    if not first.cancelled():
        first.exception()  # retrieved, so that asyncio does not log it: the client is gone
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


def _abort_connection(request: web.BaseRequest) -> None:
    """Abort the connection, so that the client does not take the response for complete."""
    if request.transport is not None:
        request.transport.abort()
