"""The TLS context of a cluster and a user, made anew when their files change."""

import logging
import ssl

from podstatus.client.errors import CredentialsError, KubeconfigError
from podstatus.client.files import UnreadableError, read_file
from podstatus.client.kubeconfig import Pem
from podstatus.client.tls import (
    KeyPair,
    Loaded,
    UnusableTlsError,
    expired_message,
    tls_context,
)

logger = logging.getLogger(__name__)

_Content = tuple[Loaded | None, KeyPair | None]


class TlsFiles:
    """Whom to trust and who we are, from a kubeconfig and the files that it names.

    Connections that are open stay as they are; new ones are made with the new context.
    """

    def __init__(
        self,
        *,
        authority: Pem | None = None,
        certificate: Pem | None = None,
        key: Pem | None = None,
        insecure: bool = False,
    ) -> None:
        self._authority = authority
        self._certificate = certificate
        self._key = key
        self._insecure = insecure
        self._content: _Content = (None, None)
        self._context: ssl.SSLContext | None = None
        self._expires: int | None = None
        self._warned = ""

    def authority(self) -> bytes:
        """The certificates to trust, PEM; empty if those of the system are. For plugins."""
        return b"" if self._content[0] is None else self._content[0].content

    def context(self, now: int) -> ssl.SSLContext:
        """The context for what is in the files now; the same one if nothing changed.

        Raises KubeconfigError if there never was a good one, CredentialsError if our certificate
        has run out meanwhile.
        """
        context = self._looked(now)
        if self._expires is not None and self._expires <= now and self._certificate is not None:
            raise CredentialsError(expired_message(self._certificate.name, self._expires))
        return context

    def context_for(self, pair: KeyPair) -> ssl.SSLContext:
        """A context with the certificate of somebody else. Raises UnusableTlsError."""
        return tls_context(self._content[0], pair, insecure=self._insecure)

    def _looked(self, now: int) -> ssl.SSLContext:
        try:
            return self._made(self._read(), now)
        except UnusableTlsError as error:
            if self._context is None:
                raise KubeconfigError(str(error)) from error
            self._warn(str(error))
            return self._context

    def _read(self) -> _Content:
        authority = None if self._authority is None else _loaded(self._authority)
        if self._certificate is None or self._key is None:
            return authority, None
        return authority, KeyPair(_loaded(self._certificate), _loaded(self._key))

    def _made(self, content: _Content, now: int) -> ssl.SSLContext:
        if self._context is not None and content == self._content:
            return self._context
        authority, pair = content
        expires = None if pair is None else pair.expires()
        if expires is not None and expires <= now and pair is not None:
            raise UnusableTlsError(expired_message(pair.certificate.pem.name, expires))
        context = tls_context(authority, pair, insecure=self._insecure)
        if self._context is not None:
            logger.info("certificates changed, new connections use them")
        self._content, self._context, self._expires = content, context, expires
        self._warned = ""
        return context

    def _warn(self, problem: str) -> None:
        """Once per problem: files may be halfway through being replaced."""
        if problem != self._warned:
            logger.warning("certificates not reloaded, the last good ones stay: error=%s", problem)
        self._warned = problem


def _loaded(pem: Pem) -> Loaded:
    if not pem.path:
        return Loaded(pem, pem.data)
    try:
        return Loaded(pem, read_file(pem.path))
    except UnreadableError as error:
        raise UnusableTlsError(
            f"{pem.name} cannot be read: {error}; put the file there, or correct its name"
        ) from error
