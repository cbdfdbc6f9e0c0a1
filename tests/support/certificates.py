"""Certificates for tests: an authority, and whom it vouches for."""

import datetime
from functools import cache
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization

from podstatus.apiserver.pki.key_pair import CertificateSpec, issue

DAY = datetime.timedelta(days=1)


class Pair(NamedTuple):
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self, name: str) -> None:
        self._pair = issue(_spec(name, DAY, is_authority=True))
        self.pem = self._pair.certificate_pem

    def pair(
        self,
        name: str,
        *,
        lasts: datetime.timedelta = DAY,
        hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
        password: bytes = b"",
    ) -> Pair:
        """A certificate for a server or a client, with its key."""
        pair = issue(_spec(name, lasts, hosts), self._pair)
        if not password:
            return Pair(pair.certificate_pem, pair.key_pem)
        key = pair.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password),
        )
        return Pair(pair.certificate_pem, key)


@cache
def authority(name: str = "authority") -> Authority:
    """One per name and run of the tests."""
    return Authority(name)


def self_signed(name: str, *, lasts: datetime.timedelta) -> Pair:
    """A certificate that no authority vouches for."""
    pair = issue(_spec(name, lasts))
    return Pair(pair.certificate_pem, pair.key_pem)


def _spec(
    name: str,
    lasts: datetime.timedelta,
    hosts: tuple[str, ...] = (),
    *,
    is_authority: bool = False,
) -> CertificateSpec:
    now = datetime.datetime.now(datetime.UTC)
    return CertificateSpec(
        common_name=name,
        names=frozenset(hosts),
        is_authority=is_authority,
        not_before=now - 10 * DAY,
        not_after=now + lasts,
    )
