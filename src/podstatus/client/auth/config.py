"""Address, TLS and credentials of an API server: `ClientConfig`, the port of the client.

`ResolvedClientConfig` implements it; the factories of `podstatus.client.auth.load_config` return
one."""

import ssl
from collections.abc import Coroutine
from typing import Any, Protocol

from podstatus.client.kubeconfig.model import RedactedStruct


class Credentials(RedactedStruct, frozen=True, kw_only=True, eq=False):
    """The credentials of one request. Immutable: a renewal creates a new value."""

    authorization: str | None = None
    """The value of the Authorization header, such as `Bearer …`."""
    tls: ssl.SSLContext | None = None
    """The trusted CAs, and the client certificate if there is one; None without TLS."""

    def updated(self, authorization: str | None, tls: ssl.SSLContext | None) -> "Credentials":
        """Return the same object as long as nothing changed."""
        if self.authorization == authorization and self.tls is tls:
            return self
        return Credentials(authorization=authorization, tls=tls)


class CredentialProvider(Protocol):
    """Provides the credentials of a client configuration."""

    async def credentials(self) -> Credentials:
        """Return the current credentials; the same object as long as nothing changed.

        Called before every request, so it has to be cheap. Raises CredentialsError.
        """

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Return other credentials than these, which the server refused with 401, or None.

        Many requests may be refused at the same time: calls after a renewal get its result.
        Raises CredentialsError.
        """


class ClientConfig(CredentialProvider, Protocol):
    """A server and its credentials, which are renewed before they expire."""

    @property
    def server(self) -> str:
        """Return the URL: scheme, host, port, optionally a path; no trailing slash."""

    @property
    def source(self) -> str:
        """Return the origin for messages: `context "dev" of /home/me/.kube/config`."""

    @property
    def namespace(self) -> str:
        """Return the default namespace of the context."""

    @property
    def server_hostname(self) -> str | None:
        """Return the name in the server's certificate if it differs from the host."""

    @property
    def proxy(self) -> str | None:
        """Return the URL of the HTTP proxy, or None."""


class ResolvedClientConfig:
    """Implements `ClientConfig` with a credential provider."""

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
        self.server = server.strip().rstrip("/")
        self.source = source
        self.namespace = namespace
        self.server_hostname = server_hostname
        self.proxy = proxy
        """It may contain a password."""
        self._credential_provider = credential_provider

    def __repr__(self) -> str:
        return f"ResolvedClientConfig({self.server}, by {self.source})"

    def credentials(self) -> Coroutine[Any, Any, Credentials]:
        return self._credential_provider.credentials()

    async def renew(self, refused: Credentials) -> Credentials | None:
        return await self._credential_provider.renew(refused)
