"""The server's certificate authority, serving certificate and kubelet client certificate.

Created at the first start and stored in the state directory; renewed before they expire, or when
the server gets another name.
"""

import asyncio
import datetime
import ipaddress
import logging
import ssl
from collections.abc import Iterable

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podstatus.apiserver.state_dir import StateDir, StateDirError
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog

logger = logging.getLogger(__name__)

CA_CERTIFICATE = "ca.crt"
"""The CA certificate, for clients."""
KUBELET_CLIENT = "client"
"""Base name of the client certificate for kubelets: `client.crt`, `client.key`."""
KUBELET_CLIENT_NAME = "podstatus-apiserver"
KUBELET_CLIENT_GROUP = "system:masters"
"""Kubelets ask the API server for authorization, which allows this group everything."""
LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")

_AUTHORITY_DAYS = 3650
_SERVER_DAYS = 365
_RENEW_DAYS = 30
"""Renew a certificate with fewer days left."""
_CHECK_SECONDS = 10.0
"""Interval of the expiry checks."""
_CLOCK_SKEW = datetime.timedelta(minutes=5)
"""Certificates are valid from a little before now, for clients whose clock is behind."""


class CertificateKeyPair(msgspec.Struct, frozen=True):
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate in PEM encoding."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key in PEM encoding, unencrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


class Certificates:
    """The certificates in a state directory; `now` is in nanoseconds since the Unix epoch."""

    def __init__(self, state_dir: StateDir, now: int) -> None:
        self._state_dir = state_dir
        self._now = datetime.datetime.fromtimestamp(now / 1e9, datetime.UTC)

    def ensure(self, hosts: Iterable[str] = LOOPBACK_NAMES) -> bytes:
        """Create or renew the certificates for these names; return the CA certificate, PEM.

        Raises StateDirError.
        """
        authority = self._read_pair("ca")
        if authority is None or not self._is_valid(authority):
            authority = self._write_pair("ca", self._new_authority())
        self._ensure_signed(authority, hosts)
        return authority.certificate_pem

    def renew(self, hosts: Iterable[str] = LOOPBACK_NAMES) -> bool:
        """Renew certificates while the server runs; return whether the serving certificate changed.

        The CA stays, since clients trust it: `ensure` renews an expired one at the next start.
        Raises StateDirError.
        """
        authority = self._read_pair("ca")
        if authority is None or not self._is_valid(authority):
            return False
        return self._ensure_signed(authority, hosts)

    def _ensure_signed(self, authority: CertificateKeyPair, hosts: Iterable[str]) -> bool:
        names = frozenset([*LOOPBACK_NAMES, *hosts])
        server, client = self._read_pair("server"), self._read_pair(KUBELET_CLIENT)
        is_new = server is None or not self._covers_names(server, authority, names)
        if is_new:
            self._write_pair("server", self._new_server(authority, names))
        if client is None or not self._is_signed_by(client, authority):
            self._write_pair(KUBELET_CLIENT, self._new_client(authority))
        return is_new

    def server_context(self) -> ssl.SSLContext:
        """Return an SSL context with the serving certificate; call `ensure` first."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Load the current serving certificate; it is used for new connections."""
        context.load_cert_chain(
            self._state_dir.path / "server.crt", self._state_dir.path / "server.key"
        )

    def _read_pair(self, name: str) -> CertificateKeyPair | None:
        certificate = self._state_dir.read(f"{name}.crt")
        key = self._state_dir.read(f"{name}.key")
        if certificate is None or key is None:
            return None
        try:
            return _load_key_pair(certificate, key)
        except ValueError as error:
            raise StateDirError(
                f"{self._state_dir.path / name}.crt and .key are damaged ({error}); remove both, "
                "they are created again"
            ) from error

    def _write_pair(self, name: str, identity: CertificateKeyPair) -> CertificateKeyPair:
        # The key first: a certificate with another key is detected and replaced.
        self._state_dir.write(f"{name}.key", identity.key_pem)
        self._state_dir.write(f"{name}.crt", identity.certificate_pem)
        return identity

    def _is_valid(self, identity: CertificateKeyPair) -> bool:
        certificate = identity.certificate
        remaining = certificate.not_valid_after_utc - self._now
        started = certificate.not_valid_before_utc <= self._now
        matches = certificate.public_key() == identity.key.public_key()
        return started and matches and remaining > datetime.timedelta(days=_RENEW_DAYS)

    def _is_signed_by(self, identity: CertificateKeyPair, authority: CertificateKeyPair) -> bool:
        try:
            identity.certificate.verify_directly_issued_by(authority.certificate)
        except (InvalidSignature, ValueError):
            return False
        return self._is_valid(identity)

    def _covers_names(
        self, server: CertificateKeyPair, authority: CertificateKeyPair, names: frozenset[str]
    ) -> bool:
        return self._is_signed_by(server, authority) and names <= _subject_names(server.certificate)

    def _new_authority(self) -> CertificateKeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        # The random number distinguishes CAs that a client has met at the same address.
        name = _subject(f"podstatus-ca-{x509.random_serial_number():040x}"[:52])
        usage = _key_usage(signs_certificates=True)
        builder = (
            self._builder(name, name, key, _AUTHORITY_DAYS)
            .not_valid_before(self._now - _CLOCK_SKEW)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        return CertificateKeyPair(builder.sign(key, hashes.SHA256()), key)

    def _new_server(
        self, authority: CertificateKeyPair, names: frozenset[str]
    ) -> CertificateKeyPair:
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject("podstatus-apiserver")
        builder = self._signed_builder(subject, authority, key, ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(alternatives, critical=False)
        return CertificateKeyPair(builder.sign(authority.key, hashes.SHA256()), key)

    def _new_client(self, authority: CertificateKeyPair) -> CertificateKeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(KUBELET_CLIENT_NAME, group=KUBELET_CLIENT_GROUP)
        builder = self._signed_builder(subject, authority, key, ExtendedKeyUsageOID.CLIENT_AUTH)
        return CertificateKeyPair(builder.sign(authority.key, hashes.SHA256()), key)

    def _signed_builder(
        self,
        subject: x509.Name,
        authority: CertificateKeyPair,
        key: ec.EllipticCurvePrivateKey,
        purpose: x509.ObjectIdentifier,
    ) -> x509.CertificateBuilder:
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
        return (
            self._builder(subject, authority.certificate.subject, key, _SERVER_DAYS)
            # As the CA: also valid for clients with a correct clock if this machine's was ahead.
            .not_valid_before(authority.certificate.not_valid_before_utc)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(issuer_key, critical=False)
        )

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
    ) -> x509.CertificateBuilder:
        subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_after(self._now + datetime.timedelta(days=days))
            .add_extension(subject_key, critical=False)
        )


async def renew_periodically(
    state_dir: StateDir, context: ssl.SSLContext, hosts: Iterable[str], clock: Clock
) -> None:
    """Renew the serving certificate before it expires. Runs until cancelled.

    Wall-clock jumps past the expiry are noticed within the check interval.
    """
    hosts, failure_log = (
        tuple(hosts),
        FailureLog(logger, "renewing certificates", expected=StateDirError),
    )
    while True:
        await clock.wait(_CHECK_SECONDS)
        certificates = Certificates(state_dir, clock.now())
        try:
            if await asyncio.to_thread(certificates.renew, hosts):
                certificates.load(context)
                logger.info("serving certificate renewed")
        except (StateDirError, ssl.SSLError, OSError) as error:
            failure_log.failed(error)
        else:
            failure_log.recovered()


def _load_key_pair(certificate: bytes, key: bytes) -> CertificateKeyPair:
    private = serialization.load_pem_private_key(key, password=None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve key")
    return CertificateKeyPair(x509.load_pem_x509_certificate(certificate), private)


def _subject(common: str, *, group: str = "") -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _subject_names(certificate: x509.Certificate) -> frozenset[str]:
    """Return the IP addresses and DNS names of a certificate."""
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in extension.get_values_for_type(x509.IPAddress)]
    return frozenset([*addresses, *extension.get_values_for_type(x509.DNSName)])
