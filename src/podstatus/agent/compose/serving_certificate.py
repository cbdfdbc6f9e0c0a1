"""What the agent's HTTPS port shows of itself: the owner's certificate, or one made here.

The one made here is signed by itself, so that the file is what clients have to trust. It is
kept, and made anew at a start if less than a month is left or the node has other names.

CannotServeNodeError     a file cannot be used; the message says which, why, and what to do
"""

import datetime
import ipaddress
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podstatus.apiserver.state_dir import write_private

CERTIFICATE_FILE, KEY_FILE, TOKEN_FILE = "agent.crt", "agent.key", "token"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_DAYS = 3650
"""It is renewed at starts only, and an agent may run for years."""
_RENEW_BEFORE = datetime.timedelta(days=30)
_CLOCK_SKEW = datetime.timedelta(minutes=5)
_MIN_TOKEN_LENGTH = 16


class KubeletServerError(Exception):
    """The port cannot be opened as it is wanted."""


def ensure_certificate(
    folder: Path, name: str, addresses: Iterable[str], now: int
) -> tuple[Path, Path]:
    """Have a certificate for these names, and its key. Raises CannotServeNodeError."""
    certificate, key = folder / CERTIFICATE_FILE, folder / KEY_FILE
    names = frozenset([*_LOOPBACK, name.lower(), *addresses])
    moment = datetime.datetime.fromtimestamp(now / 1e9, datetime.UTC)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_valid(certificate, key, names, moment):
            private = ec.generate_private_key(ec.SECP256R1())
            # The key first: a certificate whose key is another's is noticed and made anew.
            write_private(key, _key_pem(private))
            write_private(certificate, _certificate_pem(private, name, names, moment))
    except OSError as error:
        raise KubeletServerError(_unusable_message(folder, error)) from error
    return certificate, key


def ensure_agent_token(folder: Path) -> str:
    """The token of this agent, made at the first start. Raises CannotServeNodeError."""
    path = folder / TOKEN_FILE
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = path.read_text().strip() if path.exists() else ""
        if len(kept) < _MIN_TOKEN_LENGTH or not kept.isascii() or not kept.isprintable():
            kept = secrets.token_urlsafe(32)
            write_private(path, f"{kept}\n".encode())
    except (OSError, ValueError) as error:
        raise KubeletServerError(_unusable_message(path, error)) from error
    return kept


def server_context(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """What the port speaks TLS with. Raises CannotServeNodeError.

    A client may show a certificate, which then has to be one of the client CA's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password there is nobody to ask for one: it would stop and wait at a terminal.
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise KubeletServerError(
            f"cannot use the certificate {certificate} with the key {key}: "
            f"{_reason(error)}; pass a "
            "pair of PEM files with --tls-cert-file and --tls-private-key-file, or leave both out"
        ) from error
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise KubeletServerError(
                f"cannot use the certificates in {client_ca}: {_reason(error)}; pass a PEM "
                "file with "
                "--client-ca-file"
            ) from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def certificate_names(certificate: Path) -> tuple[str, ...]:
    """The names that a certificate is good for, addresses aside; none if it cannot be read."""
    try:
        kept = x509.load_pem_x509_certificate(certificate.read_bytes())
        alternatives = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return ()
    return tuple(alternatives.get_values_for_type(x509.DNSName))


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _is_valid(certificate: Path, key: Path, names: frozenset[str], now: datetime.datetime) -> bool:
    if not certificate.exists() or not key.exists():
        return False
    try:
        kept = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
        alternatives = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return False
    shown = {str(address) for address in alternatives.get_values_for_type(x509.IPAddress)}
    shown |= set(alternatives.get_values_for_type(x509.DNSName))
    lasts = kept.not_valid_before_utc <= now < kept.not_valid_after_utc - _RENEW_BEFORE
    return lasts and shown == names and kept.public_key() == private.public_key()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _certificate_pem(
    key: ec.EllipticCurvePrivateKey, name: str, names: frozenset[str], now: datetime.datetime
) -> bytes:
    # A name may be longer than the 64 characters of a subject; clients look at the others.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"podstatus-agent@{name}"[:64])])
    public = key.public_key()
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(each) for each in sorted(names)]),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _unusable_message(path: Path, error: Exception) -> str:
    return f"cannot use {path}: {_reason(error)}; choose another folder with --root-dir"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
