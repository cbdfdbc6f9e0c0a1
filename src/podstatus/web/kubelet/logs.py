"""Stream container logs and the agent's own log files, at the pace of the client.

The agent's own logs are the regular files of one folder; symbolic links are not followed.
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
# Without waiting: opening a pipe that nobody writes to would not come back.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def list_logs(folder: Path) -> str:
    """The names of the files, as a page with links, as upstream's file server has it."""
    with _open_directory(folder) as descriptor:
        there = sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor is no path
        names = [name for name in there if _is_file(descriptor, name)]
    links = (f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    return f"<pre>\n{''.join(links)}</pre>\n"


def open_log(folder: Path, name: str) -> tuple[BinaryIO, int]:
    """A file and its size now. Raises Refusal if there is no such file."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise _log_not_found(name)
    with _open_directory(folder) as descriptor:
        try:
            file = os.open(name, _FILE_FLAGS, dir_fd=descriptor)
        except OSError as error:
            raise _log_not_found(name) from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise _log_not_found(name)
    return os.fdopen(file, "rb"), found.st_size


@contextmanager
def _open_directory(folder: Path) -> Iterator[int]:
    try:
        descriptor = os.open(folder, _DIRECTORY_FLAGS)
    except OSError as error:
        raise not_found("404 page not found: the agent keeps no logs here") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_file(folder: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and not name.startswith(".")


def _log_not_found(name: str) -> Exception:
    return not_found(f"404 page not found: no log {name[:80]!a}; /logs/ has the names")


logger = logging.getLogger(__name__)

_PLAIN = {"Content-Type": "text/plain", "X-Content-Type-Options": "nosniff"}
_CHUNK_BYTES = 64 * 2**10
_FIRST_CHUNK_SECONDS = 0.5


async def send_container_log(
    request: web.BaseRequest, pieces: AsyncIterator[bytes], idle: IdleTimeout, *, follow: bool
) -> web.StreamResponse:
    """A container's log, as it comes. Raises Refusal if there is none.

    Who follows a log that says nothing is not idle: only who does not take what there is.
    """
    response = web.StreamResponse(headers=_PLAIN)
    first = asyncio.ensure_future(anext(pieces, None))
    try:
        # A log may be silent for long, and whoever follows it wants to know that he does.
        await asyncio.wait([first], timeout=_FIRST_CHUNK_SECONDS if follow else None)
        if first.done():
            first.result()
        await response.prepare(request)
        piece = await first
        while piece is not None:
            await _write(response, piece, idle)
            piece = await anext(pieces, None)
        await response.write_eof()
    except StreamUnavailableError as error:
        if not response.prepared:
            raise bad_request(str(error)) from error
        logger.info("log broke off: path=%s error=%s", request.path, error)
        _abort_connection(request)
    except (ConnectionError, TimeoutError) as error:
        logger.debug("reader of a log went away: path=%s error=%r", request.path, error)
        _abort_connection(request)
    finally:
        await _close_reader(first, pieces)
    return response


async def send_agent_log(
    request: web.BaseRequest, folder: Path, name: str, idle: IdleTimeout
) -> web.StreamResponse:
    """A file of ours as it is now. Raises Refusal if there is none."""
    file, size = await asyncio.to_thread(open_log, folder, name)
    with file:
        response = web.StreamResponse(headers=_PLAIN)
        response.content_length = size
        try:
            await response.prepare(request)
            await _send_file(response, file, size, idle)
            await response.write_eof()
        except (OSError, TimeoutError) as error:
            logger.debug("log was not sent to its end: file=%s error=%r", name, error)
            _abort_connection(request)
    return response


async def _send_file(
    response: web.StreamResponse, file: BinaryIO, size: int, idle: IdleTimeout
) -> None:
    while size > 0:
        piece = await asyncio.to_thread(file.read, min(_CHUNK_BYTES, size))
        if not piece:
            raise ConnectionError("the file became shorter meanwhile")
        size -= len(piece)
        await _write(response, piece, idle)


async def _write(response: web.StreamResponse, piece: bytes, idle: IdleTimeout) -> None:
    async with asyncio.timeout(idle.seconds or None):
        await response.write(piece)


async def _close_reader(
    first: "asyncio.Future[bytes | None]", pieces: AsyncIterator[bytes]
) -> None:
    """Read no more, and let who reads for us know."""
    first.cancel()
    await asyncio.wait([first])
    if not first.cancelled():
        first.exception()  # what went wrong after the reader had gone is told to nobody
    close = getattr(pieces, "aclose", None)
    if close is not None:
        await close()


def _abort_connection(request: web.BaseRequest) -> None:
    """End the connection in the middle: what came is not all, and the client is to know."""
    if request.transport is not None:
        request.transport.abort()
