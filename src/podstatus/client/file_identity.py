"""Who we are by what is written down: tokens, passwords, certificates, and files with them."""

import ssl
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.client.access import Credentials
from podstatus.client.errors import CredentialsError
from podstatus.client.tls_files import TlsFiles

_LOOK_AFTER = 10**9
"""Files are read again after a second: that costs some 50 µs, and needs no guessing about
whether a time stamp can tell two versions apart."""
_REPLACED_AFTER = (0.02, 0.08, 0.2)
"""When to look again, in seconds, for a file that is halfway through being replaced."""


class Header(Protocol):
    """What says who we are in each request."""

    def authorization(self) -> str | None:
        """The header as it is now. Raises CredentialsError."""

    def refuse(self) -> None:
        """The server does not take the one it gave: do not give it again from memory."""


class FileIdentity:
    """Credentials that others renew; we only have to notice.

    Credentials are asked for before every request; files are looked at once a second, and
    whenever a server refuses what was in them.
    """

    def __init__(self, header: Header, tls: TlsFiles | None, clock: Clock) -> None:
        self._header = header
        self._tls = tls
        self._clock = clock
        self._current: Credentials | None = None
        self._looked = 0

    async def credentials(self) -> Credentials:
        """What to send now. Raises CredentialsError."""
        if self._current is not None and 0 <= self._clock.now() - self._looked < _LOOK_AFTER:
            return self._current
        return self.look()

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, if the files have some by now. Raises CredentialsError."""
        current = self.look()
        if current is not refused:
            return current
        self._header.refuse()
        for seconds in _REPLACED_AFTER:
            try:
                return _other(self.look(), refused)
            except CredentialsError:
                await self._clock.wait(seconds)
        return _other(self.look(), refused)

    def look(self) -> Credentials:
        """Read all files. Raises KubeconfigError the first time, CredentialsError later."""
        now = self._clock.now()
        tls = None if self._tls is None else self._tls.context(now)
        self._current = _changed(self._current, self._header.authorization(), tls)
        self._looked = now
        return self._current


def _changed(
    current: Credentials | None, authorization: str | None, tls: ssl.SSLContext | None
) -> Credentials:
    """The same value as long as nothing changed."""
    if current and current.authorization == authorization and current.tls is tls:
        return current
    return Credentials(authorization=authorization, tls=tls)


def _other(found: Credentials, refused: Credentials) -> Credentials | None:
    return None if found is refused else found
