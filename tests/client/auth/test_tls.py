"""TLS contexts: whom we trust, who we are, and what is left on the disk."""

import ssl
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="needs podstatus[agent]")

from podstatus.client.auth.tls import KeyPair, PemContent, tls_context
from podstatus.client.kubeconfig.model import Pem
from tests.client.auth.tls_servers import peer_name, tls_server
from tests.support.certificates import Pair, authority


def loaded(content: bytes) -> PemContent:
    return PemContent(Pem(field="it", data=content), content)


def key_pair(pair: Pair) -> KeyPair:
    return KeyPair(loaded(pair.certificate), loaded(pair.key))


def context(trusted: bytes, pair: Pair | None = None) -> ssl.SSLContext:
    return tls_context(loaded(trusted), key_pair(pair or authority().pair("me")), insecure=False)


async def test_a_server_is_trusted_by_its_authority_or_its_own_certificate() -> None:
    server = authority().pair("server")
    async with tls_server(authority(), pair=server) as port:
        assert await peer_name(port, context(authority().pem)) == "me"
        assert await peer_name(port, context(server.certificate)) == "me"
        commented = "# für alle\n".encode() + authority("other").pem + authority().pem
        assert await peer_name(port, context(commented)) == "me"
        with pytest.raises(ssl.SSLCertVerificationError):
            await peer_name(port, context(authority("other").pem))


async def test_the_system_cas_are_the_default() -> None:
    async with tls_server(authority()) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await peer_name(port, tls_context(None, None, insecure=False))


async def test_insecure_verifies_nothing() -> None:
    async with tls_server(authority()) as port:
        unchecked = tls_context(None, key_pair(authority().pair("me")), insecure=True)
        assert await peer_name(port, unchecked) == "me"


def test_old_versions_are_not_spoken() -> None:
    assert context(authority().pem).minimum_version is ssl.TLSVersion.TLSv1_2


def test_one_file_may_hold_both() -> None:
    """As for the kubelet: `client-certificate` and `client-key` are the same file."""
    pair = authority().pair("me")
    both = pair.certificate + pair.key
    context(authority().pem, Pair(both, both))


def test_a_key_is_on_the_disk_for_a_moment_and_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def seen(self: ssl.SSLContext, certificate: str, key: str, **options: Any) -> None:
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (Path(key), Path(key).parent))
        load(self, certificate, key, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", seen)
    context(authority().pem)
    assert modes == [0o600, 0o700]
    assert list(tmp_path.iterdir()) == []
