"""The server's certificate authority, serving certificate and kubelet client certificate.

Created at the first start and stored in the state directory; renewed before they expire, or when
the server gets another name.
"""

import asyncio
import datetime
import logging
import secrets
import ssl
from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature

from podstatus.apiserver.pki.key_pair import (
    CLIENT_AUTH,
    CLOCK_SKEW,
    LOOPBACK_NAMES,
    SERVER_AUTH,
    CertificateKeyPair,
    CertificateSpec,
    issue,
    load_key_pair,
)
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

_AUTHORITY_LIFETIME = datetime.timedelta(days=3650)
_LIFETIME = datetime.timedelta(days=365)
_CHECK_SECONDS = 10.0
"""Interval of the expiry checks."""


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
        if authority is None or not authority.is_valid(self._now):
            authority = self._write_pair("ca", self._new_authority())
        self._ensure_signed(authority, hosts)
        return authority.certificate_pem

    def renew(self, hosts: Iterable[str] = LOOPBACK_NAMES) -> bool:
        """Renew certificates while the server runs; return whether the serving certificate changed.

        The CA stays, since clients trust it: `ensure` renews an expired one at the next start.
        Raises StateDirError.
        """
        authority = self._read_pair("ca")
        if authority is None or not authority.is_valid(self._now):
            return False
        return self._ensure_signed(authority, hosts)

    def _ensure_signed(self, authority: CertificateKeyPair, hosts: Iterable[str]) -> bool:
        names = frozenset([*LOOPBACK_NAMES, *hosts])
        server, client = self._read_pair("server"), self._read_pair(KUBELET_CLIENT)
        is_new = (
            server is None or not self._is_signed_by(server, authority) or not names <= server.names
        )
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
            return load_key_pair(certificate, key)
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

    def _is_signed_by(self, identity: CertificateKeyPair, authority: CertificateKeyPair) -> bool:
        try:
            identity.certificate.verify_directly_issued_by(authority.certificate)
        except (InvalidSignature, ValueError):
            return False
        return identity.is_valid(self._now)

    def _new_authority(self) -> CertificateKeyPair:
        return issue(
            CertificateSpec(
                # The random number distinguishes CAs that a client has met at the same address.
                common_name=f"podstatus-ca-{secrets.token_hex(20)}"[:52],
                is_authority=True,
                not_before=self._now - CLOCK_SKEW,
                not_after=self._now + _AUTHORITY_LIFETIME,
            )
        )

    def _new_server(
        self, authority: CertificateKeyPair, names: frozenset[str]
    ) -> CertificateKeyPair:
        spec = CertificateSpec(
            common_name="podstatus-apiserver",
            names=names,
            purpose=SERVER_AUTH,
            # As the CA: also valid for clients with a correct clock if this machine's was ahead.
            not_before=authority.certificate.not_valid_before_utc,
            not_after=self._now + _LIFETIME,
        )
        return issue(spec, authority)

    def _new_client(self, authority: CertificateKeyPair) -> CertificateKeyPair:
        spec = CertificateSpec(
            common_name=KUBELET_CLIENT_NAME,
            group=KUBELET_CLIENT_GROUP,
            purpose=CLIENT_AUTH,
            not_before=authority.certificate.not_valid_before_utc,
            not_after=self._now + _LIFETIME,
        )
        return issue(spec, authority)


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
