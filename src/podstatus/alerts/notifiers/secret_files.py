"""Secrets and certificates in files, read anew whenever they are needed.

What is wrong with one is never for good: such files are replaced while others read them. Nothing
has been sent then, so all is told by NotReachedError. Their disks may hang: see slow_files.py.
"""

import ssl
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from podstatus.alerts.model import Action
from podstatus.alerts.ports import NotSentError
from podstatus.client.auth.files import UnreadableError, read_file

_MAX_TOKEN = 16 * 1024
"""Bytes: servers take no header of that length."""


def read_secret(path: str) -> bytes:
    """What is in a file, without white space around it. Raises NotReachedError."""
    content = _read(path).strip()
    if not content:
        raise NotSentError(f"{path} is empty; write the secret into it")
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise NotSentError(f"cannot read {path}: {error.strerror}") from error
    if mode & stat.S_IRWXO:
        raise NotSentError(f"everybody on this machine may use {path}; chmod 600 {path}")
    return content


def bearer_header(path: str) -> dict[str, str]:
    """The header with the token in a file, if one is named. Raises NotReachedError."""
    if not path:
        return {}
    token = read_secret(path).decode(errors="replace")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise NotSentError(f"{path} holds no token; write one into it")
    if len(token) > _MAX_TOKEN:
        raise NotSentError(f"{path} holds more than {_MAX_TOKEN} bytes; write a token into it")
    return {"Authorization": f"Bearer {token}"}


def tls_trust(path: str) -> ssl.SSLContext | bool:
    """Whom to trust: the certificates in a file, or whom this machine trusts if none is named.

    Raises NotReachedError.
    """
    if not path:
        return True
    try:
        return _context(_read(path))
    except (ssl.SSLError, ValueError) as error:
        raise NotSentError(f"{path} holds no certificates: {error}") from error


def file_errors(action: Action) -> Iterator[str]:
    """What is wrong with the files of an action, as they are here and now."""
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
"""By the names of options, what reads such a file; none if it is not named."""


@lru_cache(maxsize=16)
def _context(pem: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=pem.decode("ascii"))
