"""Secrets and certificates in files, read for every request.

An invalid file is never a permanent error: such files are replaced while they are in use. Nothing
has been sent by then, so every error is a NotSentError. A mount that hangs delays neither the event
loop, and with it the node lease, nor process exit.
"""

import asyncio
import ssl
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from podstatus.alerts.model import Action
from podstatus.alerts.ports import NotSentError
from podstatus.base.daemon_thread import SharedCalls
from podstatus.client.auth.files import UnreadableError, read_file

T = TypeVar("T")
READ_TIMEOUT_SECONDS = 5.0
"""How long a caller waits for a file."""
_reads = SharedCalls()
_MAX_TOKEN = 16 * 1024
"""Bytes; servers reject longer headers."""


async def read_with_timeout(read: Callable[[str], T], path: str) -> T:
    """Return `read(path)`, read in a daemon thread; directly if the path is empty.

    Raises NotSentError, and what `read` raises.
    """
    if not path:
        return read(path)
    try:
        async with asyncio.timeout(READ_TIMEOUT_SECONDS):
            return await _reads.run(read, path)
    except TimeoutError:
        raise NotSentError(
            f"cannot read {path}: no answer in {READ_TIMEOUT_SECONDS:g} s; check whether its "
            "disk responds"
        ) from None


def read_secret(path: str) -> bytes:
    """Return the content of a file without surrounding white space. Raises NotSentError."""
    content = _read(path).strip()
    if not content:
        raise NotSentError(f"{path} is empty; write the secret into it")
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise NotSentError(f"cannot read {path}: {error.strerror}") from error
    if mode & stat.S_IRWXO:
        raise NotSentError(f"{path} is accessible to every user; run chmod 600 {path}")
    return content


def bearer_header(path: str) -> dict[str, str]:
    """Return the Authorization header; empty without a path. Raises NotSentError."""
    if not path:
        return {}
    token = read_secret(path).decode(errors="replace")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise NotSentError(f"{path} does not contain a valid token; write one into it")
    if len(token) > _MAX_TOKEN:
        raise NotSentError(f"{path} is larger than {_MAX_TOKEN} bytes; write a token into it")
    return {"Authorization": f"Bearer {token}"}


def tls_trust(path: str) -> ssl.SSLContext | bool:
    """Return the TLS context for a CA bundle; True without a path, for the CAs of the system.

    Raises NotSentError.
    """
    if not path:
        return True
    try:
        return _context(_read(path))
    except (ssl.SSLError, ValueError) as error:
        raise NotSentError(f"{path} does not contain certificates: {error}") from error


def file_errors(action: Action) -> Iterator[str]:
    """Yield the errors in the files of an action, as they are now."""
    for option, read in _READERS.items():
        try:
            read(action.options.get(option, ""))
        except NotSentError as error:
            yield f"{action.kind}: {option}: {error}"


def _read(path: str) -> bytes:
    try:
        return read_file(path)
    except UnreadableError as error:
        raise NotSentError(f"cannot read {path}: {error}") from error


_READERS: Mapping[str, Callable[[str], object]] = {
    "secretFile": lambda path: path and read_secret(path),
    "tokenFile": bearer_header,
    "caFile": tls_trust,
}
"""Reader of the file of each option; does nothing without a path."""


@lru_cache(maxsize=16)
def _context(pem: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=pem.decode("ascii"))
