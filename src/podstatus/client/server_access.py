"""A server and who we are there: what the factories of `find_access` give out."""

from collections.abc import Coroutine
from typing import Any, Protocol

from podstatus.client.access import Credentials


class Identity(Protocol):
    """Who we are: the part of an access that changes."""

    async def credentials(self) -> Credentials:
        """What to send now. Raises CredentialsError."""

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, if there are any. Raises CredentialsError."""


class ServerAccess:
    """Satisfies `podstatus.client.access.Access`."""

    def __init__(
        self,
        *,
        server: str,
        source: str,
        namespace: str,
        identity: Identity,
        server_hostname: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self._server = server.strip().rstrip("/")
        self._source = source
        self._namespace = namespace
        self._identity = identity
        self._server_hostname = server_hostname
        self._proxy = proxy

    def __repr__(self) -> str:
        return f"ServerAccess({self._server}, by {self._source})"

    @property
    def server(self) -> str:
        """Where it is, without a slash at the end."""
        return self._server

    @property
    def source(self) -> str:
        """Who said so, for messages."""
        return self._source

    @property
    def namespace(self) -> str:
        """The namespace for those who name none."""
        return self._namespace

    @property
    def server_hostname(self) -> str | None:
        """The name in the server's certificate, if it is not the host's."""
        return self._server_hostname

    @property
    def proxy(self) -> str | None:
        """The HTTP proxy on the way; there may be a password in it."""
        return self._proxy

    def credentials(self) -> Coroutine[Any, Any, Credentials]:
        """What to send now. Raises CredentialsError."""
        return self._identity.credentials()

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, which were refused; None if there are none."""
        return await self._identity.renew(refused)
