"""Credentials from tokens, passwords and certificates, reloaded when their files change."""

import logging
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.client.auth.config import Credentials
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.tls import TlsFiles
from podstatus.client.config_errors import CredentialsError, KubeconfigError
from podstatus.client.kubeconfig.validate import is_header_text

_RELOAD_AFTER_NS = 10**9
"""Files are read again after a second: that costs some 50 µs, and does not depend on the resolution
of time stamps to detect a new version."""
_RELOAD_RETRY_SECONDS = (0.02, 0.08, 0.2)
"""Delays before further reads of a file that is being replaced."""


class AuthHeader(Protocol):
    """Provides the Authorization header of requests."""

    def authorization(self) -> str | None:
        """Return the current header value. Raises CredentialsError."""

    def invalidate(self) -> None:
        """Drop the cached value: the server refused it."""


class FileCredentials:
    """Credentials from files that are rotated externally.

    Files are read at most once a second, and again when a server refuses their content.
    """

    def __init__(self, header: AuthHeader, tls: TlsFiles | None, clock: Clock) -> None:
        self._header = header
        self._tls = tls
        self._clock = clock
        self._current: Credentials | None = None
        self._reloaded_at = 0

    async def credentials(self) -> Credentials:
        age = self._clock.monotonic() - self._reloaded_at
        if self._current is not None and age < _RELOAD_AFTER_NS:
            return self._current
        return self.reload()

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Return other credentials if the files have changed, or None. Raises CredentialsError."""
        if self._current is refused:
            self._header.invalidate()
        for seconds in _RELOAD_RETRY_SECONDS:
            try:
                return _if_different(self.reload(), refused)
            except CredentialsError:
                await self._clock.wait(seconds)
        return _if_different(self.reload(), refused)

    def reload(self) -> Credentials:
        """Read all files. Raises KubeconfigError at the first call, CredentialsError later."""
        tls = None if self._tls is None else self._tls.context(self._clock.now())
        current = self._current or Credentials()
        self._current = current.updated(self._header.authorization(), tls)
        self._reloaded_at = self._clock.monotonic()
        return self._current

    def validate(self, source: str) -> None:
        """Raise KubeconfigError for missing files now, not with the first request."""
        try:
            self.reload()
        except (CredentialsError, KubeconfigError) as error:
            raise KubeconfigError(f"{source} cannot be used: {error}") from error


def _if_different(current: Credentials, refused: Credentials) -> Credentials | None:
    return None if current is refused else current


logger = logging.getLogger(__name__)


class TokenFile:
    """The last valid token of a file.

    While the file is being replaced it may be empty or missing for a moment: then the last valid
    token is used, until a server refuses it.

    Upstream: fileTokenSource, transport/token_source.go, client-go v0.36.4.
    """

    def __init__(self, path: str, token: str = "") -> None:
        """`token`: used as long as the file cannot be read."""
        self._path = path
        self._token = token
        self._last_warning = ""

    def __repr__(self) -> str:
        return f"TokenFile({self._path})"

    def authorization(self) -> str:
        """Return the header for the file's current token. Raises CredentialsError."""
        problem = self._reload()
        if problem and not self._token:
            raise CredentialsError(
                f"token file {self._path} cannot be used: {problem}; write a token to it"
            )
        if problem and problem != self._last_warning:
            logger.warning(
                "cannot reload the token file, using the last valid token: file=%s error=%s",
                self._path,
                problem,
            )
        self._last_warning = problem
        return f"Bearer {self._token}"

    def invalidate(self) -> None:
        """Drop the last valid token: the server refused it, only the file can have another."""
        self._token = ""

    def _reload(self) -> str:
        """Load the token from the file; return "" or an error message."""
        try:
            token = read_file(self._path).decode().strip()
        except UnreadableError as error:
            return str(error)
        except UnicodeDecodeError:
            return "it is not UTF-8 text"
        if not token:
            return "it is empty"
        if not is_header_text(token):
            return "its token has invalid characters"
        self._token = token
        return ""


class StaticHeader:
    """A fixed Authorization header, or none."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    def __repr__(self) -> str:
        return "StaticHeader(…)"

    def authorization(self) -> str | None:
        return self._header

    def invalidate(self) -> None:
        """Do nothing: there is no other value."""
