"""The simplest ways in: one token, or tokens that are refused one after another."""

import ssl

from podstatus.client.auth.config import Credentials
from podstatus.testing.servers.access import ServerAccess


class PlainAccess:
    """A server with one set of credentials."""

    source = "the test"
    namespace = "default"
    server_hostname = None
    proxy = None

    def __init__(self, server: str, *tokens: str, tls: ssl.SSLContext | None = None) -> None:
        self.server = server
        self.renewals = 0
        self._known = [
            Credentials(authorization=f"Bearer {token}", tls=tls) for token in tokens
        ] or [Credentials(tls=tls)]

    @classmethod
    def of(cls, server: ServerAccess, *refused: str) -> "PlainAccess":
        """The way into a test server, after tokens that it does not take."""
        tls = ssl.create_default_context(cafile=str(server.authority))
        return cls(server.url, *refused, server.token, tls=tls)

    async def credentials(self) -> Credentials:
        return self._known[0]

    async def renew(self, refused: Credentials) -> Credentials | None:
        self.renewals += 1
        if refused is self._known[0]:
            if len(self._known) == 1:
                return None
            self._known.pop(0)
        return self._known[0]
