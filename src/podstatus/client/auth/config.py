"""Address, TLS and credentials of an API server: `ClientConfig`, the port of the client.

`ResolvedClientConfig` implements it; the factories of `podstatus.client.auth.load_config` return
one."""

import ssl
from collections.abc import Coroutine
from typing import Any, Protocol

import msgspec


class Credentials(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What goes with a request. A value: what is renewed is another one."""

    authorization: str | None = None
    """The whole header, such as `Bearer …`."""
    tls: ssl.SSLContext | None = None
    """Whom to trust, and the client's certificate if it has one; None without TLS."""

    def __repr__(self) -> str:
        return "Credentials(…)"


class ClientConfig(Protocol):
    """A server, and the credentials for it, renewed as they run out."""

    @property
    def server(self) -> str:
        """Where it is: scheme, host, port, perhaps a path; no slash at the end."""

    @property
    def source(self) -> str:
        """Who said so, for messages: `context "dev" of /home/me/.kube/config`."""

    @property
    def namespace(self) -> str:
        """The namespace for those who name none."""

    @property
    def server_hostname(self) -> str | None:
        """The name in the server's certificate, if it is not the host's."""

    @property
    def proxy(self) -> str | None:
        """The HTTP proxy on the way, if there is one."""

    async def credentials(self) -> Credentials:
        """What to send now; the very same value as long as nothing changed.

        Asked before every request, so it costs next to nothing then. Raises CredentialsError.
        """

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, which the server has refused with 401; None if there are none.

        Many requests may be refused at once: whoever asks after the renewal gets its result.
        Raises CredentialsError.
        """


class CredentialProvider(Protocol):
    """Who we are: the part of an access that changes."""

    async def credentials(self) -> Credentials:
        """What to send now. Raises CredentialsError."""

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, if there are any. Raises CredentialsError."""


class ResolvedClientConfig:
    """Satisfies `podstatus.client.auth.config.Access`."""

    def __init__(
        self,
        *,
        server: str,
        source: str,
        namespace: str,
        credential_provider: CredentialProvider,
        server_hostname: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self._server = server.strip().rstrip("/")
        self._source = source
        self._namespace = namespace
        self._credential_provider = credential_provider
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
        return self._credential_provider.credentials()

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Others than these, which were refused; None if there are none."""
        return await self._credential_provider.renew(refused)
