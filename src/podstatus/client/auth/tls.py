"""TLS contexts of a cluster and a user, from PEM content, reloaded when their files change.

Upstream: TLSConfigFor, transport/transport.go, client-go v0.36.4.
"""

import logging
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.config_errors import CredentialsError, KubeconfigError
from podstatus.client.kubeconfig.model import Pem
from podstatus.kube.scalars.time import Time


class UnusableTlsError(Exception):
    """A certificate or key cannot be used; the message has its name and the reason."""


class PemContent(msgspec.Struct, frozen=True):
    """A PEM text and its origin."""

    pem: Pem
    content: bytes

    def __repr__(self) -> str:
        return f"PemContent({self.pem.name})"


class KeyPair(msgspec.Struct, frozen=True):
    """A client certificate with its key."""

    certificate: PemContent
    key: PemContent

    def expires(self) -> int:
        """Return the certificate's expiry, in nanoseconds since the Unix epoch.

        Raises UnusableTlsError.
        """
        # Imported when it is needed: its import takes as long as a whole command without it.
        from cryptography import x509  # noqa: PLC0415

        try:
            first = x509.load_pem_x509_certificates(self.certificate.content)[0]
        except ValueError as error:
            raise UnusableTlsError(_certificate_error(self.certificate)) from error
        return int(first.not_valid_after_utc.timestamp()) * 10**9


def tls_context(
    authority: PemContent | None, pair: KeyPair | None, *, insecure: bool
) -> ssl.SSLContext:
    """Create a client-side TLS context. Raises UnusableTlsError.

    Not `create_default_context`: newer Python versions require extensions there that the
    certificates of many clusters lack. As in Go, every certificate in `authority` is trusted, even
    if it is not self-signed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority is None:
        context.load_default_certs()
    else:
        _load_ca(context, authority)
    if pair is not None:
        _load_client_cert(context, pair)
    return context


def authority_context(pem: Pem) -> ssl.SSLContext:
    """Create a context that trusts the CAs in `pem` only. Raises UnusableTlsError."""
    return tls_context(_load_pem(pem), None, insecure=False)


def _load_ca(context: ssl.SSLContext, authority: PemContent) -> None:
    # Comments between the certificates may have non-ASCII characters.
    text = authority.content.decode("ascii", "ignore")
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise UnusableTlsError(_certificate_error(authority)) from error


def _load_client_cert(context: ssl.SSLContext, pair: KeyPair) -> None:
    certificate, key = pair.certificate, pair.key
    if b"-----BEGIN CERTIFICATE-----" not in certificate.content:
        raise UnusableTlsError(_certificate_error(certificate))
    if b"PRIVATE KEY-----" not in key.content:
        raise UnusableTlsError(
            f"{key.pem.name} has no private key in PEM format; set the right file"
        )
    try:
        with _as_file(certificate) as certificate_file, _as_file(key) as key_file:
            context.load_cert_chain(certificate_file, key_file, password=_no_password)
    except _EncryptedError:
        raise UnusableTlsError(
            f"{key.pem.name} is encrypted; decrypt it with `openssl pkey`"
        ) from None
    except ssl.SSLError as error:
        raise UnusableTlsError(_key_pair_error(pair, error)) from error
    except OSError as error:
        raise UnusableTlsError(
            f"{certificate.pem.name} and its key cannot be loaded: {error.strerror}"
        ) from error


def _key_pair_error(pair: KeyPair, error: ssl.SSLError) -> str:
    certificate, key = pair.certificate.pem.name, pair.key.pem.name
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key} is not the key of {certificate}; set the matching key"
    return f"{certificate} or {key} is damaged; replace both"


def _certificate_error(pem: PemContent) -> str:
    return f"{pem.pem.name} has no readable certificate in PEM format; replace it"


class _EncryptedError(Exception):
    """A key is encrypted; without this, Python would prompt for the password."""


def _no_password() -> str:
    raise _EncryptedError


@contextmanager
def _as_file(content: PemContent) -> Iterator[str]:
    """Yield a file with the text, temporary if needed: OpenSSL reads key pairs from files only."""
    if content.pem.path:
        yield content.pem.path
        return
    with tempfile.TemporaryDirectory(prefix="podstatus-") as folder:  # mode 0700
        path = Path(folder) / "pem"
        path.touch(mode=0o600)
        path.write_bytes(content.content)
        yield str(path)


def expired_message(name: str, expires: int) -> str:
    """Return the error message for an expired certificate; `expires` is in Unix ns."""
    since = Time.from_unix_nanos(expires)
    return f"{name} expired at {since}; renew it, or check the clock of this machine"


logger = logging.getLogger(__name__)

_Content = tuple[PemContent | None, KeyPair | None]


class TlsFiles:
    """The trusted CAs and the client certificate of a kubeconfig, reloaded from their files.

    After a change, open connections stay; new ones use the new context.
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
        self._last_warning = ""

    def authority(self) -> bytes:
        """Return the trusted CAs in PEM for plugins; empty if the system's CAs are used."""
        return b"" if self._content[0] is None else self._content[0].content

    def context(self, now: int) -> ssl.SSLContext:
        """Return the context for the current files; the same object if nothing changed.

        Raises KubeconfigError if no valid context was loaded before, CredentialsError if the
        client certificate has expired since. `now` is in Unix ns.
        """
        context = self._reload(now)
        if self._expires is not None and self._expires <= now and self._certificate is not None:
            raise CredentialsError(expired_message(self._certificate.name, self._expires))
        return context

    def context_for(self, pair: KeyPair) -> ssl.SSLContext:
        """Return a context with another client certificate. Raises UnusableTlsError."""
        return tls_context(self._content[0], pair, insecure=self._insecure)

    def _reload(self, now: int) -> ssl.SSLContext:
        try:
            return self._build(self._read(), now)
        except UnusableTlsError as error:
            if self._context is None:
                raise KubeconfigError(str(error)) from error
            self._warn(str(error))
            return self._context

    def _read(self) -> _Content:
        authority = None if self._authority is None else _load_pem(self._authority)
        if self._certificate is None or self._key is None:
            return authority, None
        return authority, KeyPair(_load_pem(self._certificate), _load_pem(self._key))

    def _build(self, content: _Content, now: int) -> ssl.SSLContext:
        if self._context is not None and content == self._content:
            return self._context
        authority, pair = content
        expires = None if pair is None else pair.expires()
        if expires is not None and expires <= now and pair is not None:
            raise UnusableTlsError(expired_message(pair.certificate.pem.name, expires))
        context = tls_context(authority, pair, insecure=self._insecure)
        if self._context is not None:
            logger.info("certificates reloaded, new connections use them")
        self._content, self._context, self._expires = content, context, expires
        self._last_warning = ""
        return context

    def _warn(self, problem: str) -> None:
        """Log each problem once: files may be in the middle of a replacement."""
        if problem != self._last_warning:
            logger.warning(
                "cannot reload certificates, using the last valid ones: error=%s", problem
            )
        self._last_warning = problem


def _load_pem(pem: Pem) -> PemContent:
    if not pem.path:
        return PemContent(pem, pem.data)
    try:
        return PemContent(pem, read_file(pem.path))
    except UnreadableError as error:
        raise UnusableTlsError(
            f"{pem.name} cannot be read: {error}; create the file, or correct its path"
        ) from error
