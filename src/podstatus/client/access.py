"""How to reach an API server, and who we are there: what the client needs to be told."""

import ssl
from typing import Protocol

import msgspec


class Credentials(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What goes with a request. A value: what is renewed is another one."""

    authorization: str | None = None
    """The whole header, such as `Bearer …`."""
    tls: ssl.SSLContext | None = None
    """Whom to trust, and the client's certificate if it has one; None without TLS."""

    def __repr__(self) -> str:
        return "Credentials(…)"


class Access(Protocol):
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
