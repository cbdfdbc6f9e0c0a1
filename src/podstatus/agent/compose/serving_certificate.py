"""The serving certificate of the agent's HTTPS server, and its token.

Without a configured certificate a self-signed one is created, which clients trust directly. It is
stored, and replaced at a start if it expires within 30 days or the node's names have changed.
"""

import datetime
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509

from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.apiserver.pki.key_pair import (
    CLOCK_SKEW,
    LOOPBACK_NAMES,
    SERVER_AUTH,
    CertificateSpec,
    issue,
    load_key_pair,
)
from podstatus.base.atomic_file import replace_file

CERTIFICATE_FILE, KEY_FILE, TOKEN_FILE = "agent.crt", "agent.key", "token"
_LIFETIME = datetime.timedelta(days=3650)
"""Long, since it is renewed only at a start and an agent may run for years."""
_MIN_TOKEN_LENGTH = 16


def ensure_certificate(
    folder: Path, name: str, addresses: Iterable[str], now: int
) -> tuple[Path, Path]:
    """Return a valid certificate for these names and its key; create them if necessary.

    Raises AgentError.
    """
    certificate, key = folder / CERTIFICATE_FILE, folder / KEY_FILE
    names = frozenset([*LOOPBACK_NAMES, name.lower(), *addresses])
    moment = datetime.datetime.fromtimestamp(now / 1e9, datetime.UTC)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_valid(certificate, key, names, moment):
            pair = issue(
                CertificateSpec(
                    # A common name has at most 64 characters; clients check the other names anyway.
                    common_name=f"podstatus-agent@{name}"[:64],
                    names=names,
                    purpose=SERVER_AUTH,
                    not_before=moment - CLOCK_SKEW,
                    not_after=moment + _LIFETIME,
                )
            )
            # The key first: after a crash in between, the mismatch is detected at the next start.
            replace_file(key, pair.key_pem)
            replace_file(certificate, pair.certificate_pem)
    except OSError as error:
        raise _unusable(folder, error) from error
    return certificate, key


def ensure_agent_token(folder: Path) -> str:
    """Return the agent's token, created at the first start. Raises AgentError."""
    path = folder / TOKEN_FILE
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        token = path.read_text().strip() if path.exists() else ""
        if len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
            token = secrets.token_urlsafe(32)
            replace_file(path, f"{token}\n".encode())
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from error
    return token


def server_context(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """Build the TLS context of the server. Raises AgentError.

    Client certificates are optional; one that is sent must be signed by `client_ca`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without this callback OpenSSL would prompt for the password of an encrypted key.
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise AgentError(
            f"cannot use the certificate {certificate} with the key {key}: {_reason(error)}; pass "
            "a pair of PEM files with --tls-cert-file and --tls-private-key-file, or leave both out"
        ) from error
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise AgentError(
                f"cannot use the certificates in {client_ca}: {_reason(error)}; pass a PEM file "
                "with --client-ca-file"
            ) from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def certificate_names(certificate: Path) -> tuple[str, ...]:
    """Return the DNS names of a certificate; none if it cannot be read."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        alternatives = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return ()
    return tuple(alternatives.get_values_for_type(x509.DNSName))


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _is_valid(certificate: Path, key: Path, names: frozenset[str], now: datetime.datetime) -> bool:
    if not certificate.exists() or not key.exists():
        return False
    try:
        pair = load_key_pair(certificate.read_bytes(), key.read_bytes())
    except ValueError:
        return False
    return pair.is_valid(now) and pair.names == names


def _unusable(path: Path, error: Exception) -> AgentError:
    message = f"cannot use {path}: {_reason(error)}; pass another --root-dir"
    return AgentError(message, code=EXIT_CONFIG)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
