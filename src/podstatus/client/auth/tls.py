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
from cryptography import x509

from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.errors import CredentialsError, KubeconfigError
from podstatus.client.kubeconfig.model import Pem
from podstatus.kube.scalars.time import Time


class UnusableTlsError(Exception):
    """A certificate or a key cannot be used; the message names it and says why."""


class PemContent(msgspec.Struct, frozen=True):
    """A PEM text, and where it came from."""

    pem: Pem
    content: bytes

    def __repr__(self) -> str:
        return f"Loaded({self.pem.name})"


class KeyPair(msgspec.Struct, frozen=True):
    """Our certificate, with its key."""

    certificate: PemContent
    key: PemContent

    def expires(self) -> int:
        """When the certificate runs out, in nanoseconds since the Unix epoch."""
        try:
            first = x509.load_pem_x509_certificates(self.certificate.content)[0]
        except ValueError as error:
            raise UnusableTlsError(_certificate_error(self.certificate)) from error
        return int(first.not_valid_after_utc.timestamp()) * 10**9


def tls_context(
    authority: PemContent | None, pair: KeyPair | None, *, insecure: bool
) -> ssl.SSLContext:
    """A context for clients. Raises UnusableTlsError.

    Not `create_default_context`: newer Pythons are strict there about what the certificates
    of many clusters lack. As in Go, every certificate that is given as an authority is trusted,
    also one that somebody else has signed.
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


def _load_ca(context: ssl.SSLContext, authority: PemContent) -> None:
    # Comments between the certificates may be in any language.
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
        raise UnusableTlsError(f"{key.pem.name} has no private key in PEM; name the right file")
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
        return f"{key} is not the key of {certificate}; name the one that belongs to it"
    return f"{certificate} or {key} is damaged; fetch both anew"


def _certificate_error(pem: PemContent) -> str:
    return f"{pem.pem.name} has no certificate in PEM that can be read; fetch it anew"


class _EncryptedError(Exception):
    """A key needs a password; Python would ask for it on the terminal."""


def _no_password() -> str:
    raise _EncryptedError


@contextmanager
def _as_file(content: PemContent) -> Iterator[str]:
    """A file with the text: its own, or one for this moment. OpenSSL reads pairs from files."""
    if content.pem.path:
        yield content.pem.path
        return
    with tempfile.TemporaryDirectory(prefix="podstatus-") as folder:  # the owner's alone
        path = Path(folder) / "pem"
        path.touch(mode=0o600)
        path.write_bytes(content.content)
        yield str(path)


def expired_message(name: str, expires: int) -> str:
    """What to say of a certificate that has run out."""
    since = Time.from_unix_nanos(expires)
    return f"{name} expired at {since}; have a new one made, or check this machine's clock"


logger = logging.getLogger(__name__)

_Content = tuple[PemContent | None, KeyPair | None]


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
        self._last_warning = ""

    def authority(self) -> bytes:
        """The certificates to trust, PEM; empty if those of the system are. For plugins."""
        return b"" if self._content[0] is None else self._content[0].content

    def context(self, now: int) -> ssl.SSLContext:
        """The context for what is in the files now; the same one if nothing changed.

        Raises KubeconfigError if there never was a good one, CredentialsError if our certificate
        has run out meanwhile.
        """
        context = self._reload(now)
        if self._expires is not None and self._expires <= now and self._certificate is not None:
            raise CredentialsError(expired_message(self._certificate.name, self._expires))
        return context

    def context_for(self, pair: KeyPair) -> ssl.SSLContext:
        """A context with the certificate of somebody else. Raises UnusableTlsError."""
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
            logger.info("certificates changed, new connections use them")
        self._content, self._context, self._expires = content, context, expires
        self._last_warning = ""
        return context

    def _warn(self, problem: str) -> None:
        """Once per problem: files may be halfway through being replaced."""
        if problem != self._last_warning:
            logger.warning("certificates not reloaded, the last good ones stay: error=%s", problem)
        self._last_warning = problem


def _load_pem(pem: Pem) -> PemContent:
    if not pem.path:
        return PemContent(pem, pem.data)
    try:
        return PemContent(pem, read_file(pem.path))
    except UnreadableError as error:
        raise UnusableTlsError(
            f"{pem.name} cannot be read: {error}; put the file there, or correct its name"
        ) from error
