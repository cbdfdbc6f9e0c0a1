"""Credentials from tokens, passwords and certificates, reloaded when their files change."""

import logging
import ssl
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.client.auth.config import Credentials
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.tls import TlsFiles
from podstatus.client.errors import CredentialsError
from podstatus.client.kubeconfig.validate import is_header_text

_RELOAD_AFTER_NS = 10**9
"""Files are read again after a second: that costs some 50 µs, and needs no guessing about
whether a time stamp can tell two versions apart."""
_RELOAD_RETRY_SECONDS = (0.02, 0.08, 0.2)
"""When to look again, in seconds, for a file that is halfway through being replaced."""


class AuthHeader(Protocol):
    """What says who we are in each request."""

    def authorization(self) -> str | None:
        """The header as it is now. Raises CredentialsError."""

    def invalidate(self) -> None:
        """The server does not take the one it gave: do not give it again from memory."""


class FileCredentials:
    """Credentials that others renew; we only have to notice.

    Credentials are asked for before every request; files are looked at once a second, and
    whenever a server refuses what was in them.
    """

    def __init__(self, header: AuthHeader, tls: TlsFiles | None, clock: Clock) -> None:
        self._header = header
        self._tls = tls
        self._clock = clock
        self._current: Credentials | None = None
        self._reloaded_at = 0

    async def credentials(self) -> Credentials:
        """What to send now. Raises CredentialsError."""
        if (
            self._current is not None
            and 0 <= self._clock.now() - self._reloaded_at < _RELOAD_AFTER_NS
        ):
            return self._current
        return self.reload()

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, if the files have some by now. Raises CredentialsError."""
        if self._current is refused:
            self._header.invalidate()
        for seconds in _RELOAD_RETRY_SECONDS:
            try:
                return _if_different(self.reload(), refused)
            except CredentialsError:
                await self._clock.wait(seconds)
        return _if_different(self.reload(), refused)

    def reload(self) -> Credentials:
        """Read all files. Raises KubeconfigError the first time, CredentialsError later."""
        now = self._clock.now()
        tls = None if self._tls is None else self._tls.context(now)
        self._current = _updated(self._current, self._header.authorization(), tls)
        self._reloaded_at = now
        return self._current


def _updated(
    current: Credentials | None, authorization: str | None, tls: ssl.SSLContext | None
) -> Credentials:
    """The same value as long as nothing changed."""
    if current and current.authorization == authorization and current.tls is tls:
        return current
    return Credentials(authorization=authorization, tls=tls)


def _if_different(current: Credentials, refused: Credentials) -> Credentials | None:
    return None if current is refused else current


logger = logging.getLogger(__name__)


class TokenFile:
    """The last good token of a file.

    While the file is being replaced it may be empty or away for a moment: then the last good
    token stays, until a server has refused it.

    Upstream: fileTokenSource, transport/token_source.go, client-go v0.36.4.
    """

    def __init__(self, path: str, token: str = "") -> None:
        """With the token to use as long as the file cannot be read, if there is one."""
        self._path = path
        self._token = token
        self._last_warning = ""

    def __repr__(self) -> str:
        return f"TokenFile({self._path})"

    def authorization(self) -> str:
        """The header for what is in the file now. Raises CredentialsError."""
        problem = self._reload()
        if problem and not self._token:
            raise CredentialsError(
                f"token file {self._path} cannot be used: {problem}; have a token written to it"
            )
        if problem and problem != self._last_warning:
            logger.warning(
                "token file not read, the last good token stays: file=%s error=%s",
                self._path,
                problem,
            )
        self._last_warning = problem
        return f"Bearer {self._token}"

    def invalidate(self) -> None:
        """Drop the last good token, as a server has: now only the file can help."""
        self._token = ""

    def _reload(self) -> str:
        """Take over what is in the file, or say what is wrong with it."""
        try:
            token = read_file(self._path).decode().strip()
        except UnreadableError as error:
            return str(error)
        except UnicodeDecodeError:
            return "it is no text"
        if not token:
            return "it is empty"
        if not is_header_text(token):
            return "it has characters in it that no token has"
        self._token = token
        return ""


class StaticHeader:
    """A header that never changes, or none."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    def __repr__(self) -> str:
        return "FixedHeader(…)"

    def authorization(self) -> str | None:
        """The header."""
        return self._header

    def invalidate(self) -> None:
        """There is no other."""
