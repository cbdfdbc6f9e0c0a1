"""Certificates with their keys: issue, load, and compare. ECDSA on P-256."""

import datetime
import ipaddress

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_AUTH, CLIENT_AUTH = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")
CLOCK_SKEW = datetime.timedelta(minutes=5)
"""Certificates are valid from a little before now, for clients whose clock is behind."""
RENEW_BEFORE = datetime.timedelta(days=30)
"""Renew a certificate with less time left."""


class CertificateKeyPair(msgspec.Struct, frozen=True):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key in PEM encoding, unencrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @property
    def names(self) -> frozenset[str]:
        """The IP addresses and DNS names of the certificate."""
        try:
            names = self.certificate.extensions.get_extension_for_class(
                x509.SubjectAlternativeName
            ).value
        except x509.ExtensionNotFound:
            return frozenset()
        addresses = map(str, names.get_values_for_type(x509.IPAddress))
        return frozenset([*addresses, *names.get_values_for_type(x509.DNSName)])

    def is_valid(self, now: datetime.datetime) -> bool:
        """Whether the key is the certificate's, and it need not be renewed yet."""
        certificate = self.certificate
        matches = certificate.public_key() == self.key.public_key()
        until = certificate.not_valid_after_utc - RENEW_BEFORE
        return matches and certificate.not_valid_before_utc <= now < until


class CertificateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a certificate that is to be issued."""

    common_name: str
    group: str = ""
    names: frozenset[str] = frozenset()
    """IP addresses and DNS names."""
    purpose: x509.ObjectIdentifier | None = None
    """SERVER_AUTH or CLIENT_AUTH; None for any."""
    is_authority: bool = False
    not_before: datetime.datetime
    not_after: datetime.datetime

    @property
    def subject(self) -> x509.Name:
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.group)] if self.group else []
        return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)])


def issue(spec: CertificateSpec, authority: CertificateKeyPair | None = None) -> CertificateKeyPair:
    """Create a key and its certificate, signed by `authority`, or by itself without one."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = authority.key if authority else key
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    max_depth = 0 if spec.is_authority else None
    builder = (
        x509.CertificateBuilder()
        .subject_name(spec.subject)
        .issuer_name(authority.certificate.subject if authority else spec.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(spec.not_before)
        .not_valid_after(spec.not_after)
        .add_extension(x509.BasicConstraints(spec.is_authority, max_depth), critical=True)
        .add_extension(_key_usage(signs_certificates=spec.is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(issuer_key, critical=False)
    )
    if spec.purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([spec.purpose]), critical=False)
    if spec.names:
        names = x509.SubjectAlternativeName([_general_name(name) for name in sorted(spec.names)])
        builder = builder.add_extension(names, critical=False)
    return CertificateKeyPair(builder.sign(signer, hashes.SHA256()), key)


def load_key_pair(certificate: bytes, key: bytes) -> CertificateKeyPair:
    """Load a pair from PEM. Raises ValueError."""
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except TypeError as error:
        raise ValueError("the key is encrypted") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve key")
    return CertificateKeyPair(x509.load_pem_x509_certificate(certificate), private)


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
