"""Tokens and certificates in files that are replaced while we use them."""

import asyncio
import datetime
import itertools
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.config_errors import CredentialsError
from podstatus.testing.clock import FakeClock
from tests.client.auth.replace_file import replace
from tests.client.auth.tls_servers import peer_name, tls_server
from tests.client.kubeconfigs import write
from tests.support.certificates import authority


class Rotated:
    """A token file, and a configuration that reads it, in virtual time."""

    def __init__(self, folder: Path, **user: str) -> None:
        self.clock = FakeClock()
        self.path = folder / "token"
        self.path.write_bytes(b"first\n")
        config = write(folder / "config", user={"tokenFile": "token", **user})
        self.access: ResolvedClientConfig = kubeconfig_config(config, clock=self.clock)

    async def sent(self) -> str | None:
        return (await self.access.credentials()).authorization


@pytest.fixture
def rotated(tmp_path: Path) -> Rotated:
    return Rotated(tmp_path)


async def test_nothing_new_is_the_very_same_value(rotated: Rotated) -> None:
    before = await rotated.access.credentials()
    for _ in range(5):
        await rotated.clock.advance(10)
        assert await rotated.access.credentials() is before


async def test_a_new_token_is_seen_after_a_second(rotated: Rotated) -> None:
    assert await rotated.sent() == "Bearer first"
    replace(rotated.path, b"second")
    await rotated.clock.advance(0.9)
    assert await rotated.sent() == "Bearer first"
    await rotated.clock.advance(0.2)
    assert await rotated.sent() == "Bearer second"


async def test_a_new_token_of_the_same_moment_is_seen(rotated: Rotated) -> None:
    """Size, time stamps and inode are equal."""
    stamp = rotated.path.stat()
    rotated.path.write_bytes(b"other\n")
    os.utime(rotated.path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    await rotated.clock.advance(1)
    assert await rotated.sent() == "Bearer other"


async def test_a_refused_token_is_looked_up_at_once(rotated: Rotated) -> None:
    refused = await rotated.access.credentials()
    replace(rotated.path, b"second")
    renewed = await asyncio.gather(*(rotated.access.renew(refused) for _ in range(50)))
    assert {each.authorization for each in renewed if each} == {"Bearer second"}
    assert len(set(map(id, renewed))) == 1
    assert await rotated.access.credentials() is renewed[0]


async def test_who_comes_late_gets_what_others_found(rotated: Rotated) -> None:
    refused = await rotated.access.credentials()
    replace(rotated.path, b"second")
    second = await rotated.access.renew(refused)
    assert second is not None
    assert await rotated.access.renew(refused) is second


async def test_there_may_be_no_other_token(rotated: Rotated) -> None:
    refused = await rotated.access.credentials()
    assert await rotated.access.renew(refused) is None
    assert await rotated.sent() == "Bearer first"


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b" \n")


def _garbage(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


def _two_lines(path: Path) -> None:
    path.write_bytes(b"one\ntwo")


def _huge(path: Path) -> None:
    path.write_bytes(b"x" * (5 * 2**20))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [_remove, _empty, _garbage, _two_lines, _huge, _folder, _pipe])
async def test_a_damaged_file_leaves_the_last_good_token(
    rotated: Rotated, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    good = await rotated.access.credentials()
    damage(rotated.path)
    for _ in range(3):
        await rotated.clock.advance(1)
        assert await rotated.access.credentials() is good
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    refusal = asyncio.ensure_future(rotated.access.renew(good))
    await rotated.clock.advance(1)
    with pytest.raises(CredentialsError, match=r"token file .*/token cannot be used: .*; write a"):
        await refusal
    with pytest.raises(CredentialsError):
        await rotated.access.credentials()


async def test_a_file_that_comes_back_is_used(rotated: Rotated) -> None:
    good = await rotated.access.credentials()
    rotated.path.unlink()
    refusal = asyncio.ensure_future(rotated.access.renew(good))
    await rotated.clock.advance(0.01)
    rotated.path.write_bytes(b"second")
    await rotated.clock.advance(1)
    renewed = await refusal
    assert renewed is not None
    assert renewed.authorization == "Bearer second"


async def test_all_who_are_refused_wait_for_a_file_that_is_being_replaced(rotated: Rotated) -> None:
    refused = await rotated.access.credentials()
    rotated.path.write_bytes(b"")
    waiting = [asyncio.ensure_future(rotated.access.renew(refused)) for _ in range(3)]
    await asyncio.sleep(0)
    rotated.path.write_bytes(b"second")
    await rotated.clock.advance(0.02)
    renewed = await asyncio.gather(*waiting, return_exceptions=True)
    assert [getattr(each, "authorization", each) for each in renewed] == ["Bearer second"] * 3


async def test_a_clock_that_is_set_back_does_not_stop_the_looking(rotated: Rotated) -> None:
    await rotated.sent()
    rotated.clock.step(-3600)
    replace(rotated.path, b"second")
    await rotated.clock.advance(1)
    assert await rotated.sent() == "Bearer second"


async def test_the_token_beside_the_file_helps_out_until_the_file_is_there(tmp_path: Path) -> None:
    path = write(tmp_path / "config", user={"tokenFile": "token", "token": "spare"})
    clock = FakeClock()
    access = kubeconfig_config(path, clock=clock)
    assert (await access.credentials()).authorization == "Bearer spare"
    (tmp_path / "token").write_bytes(b"first")
    await clock.advance(1)
    assert (await access.credentials()).authorization == "Bearer first"


async def test_no_call_fails_while_a_token_is_rotated_under_load(tmp_path: Path) -> None:
    """A server that only accepts the newest token, and a hundred concurrent callers."""
    rotated = Rotated(tmp_path)
    numbers = itertools.count()

    async def call() -> bool:
        credentials = await rotated.access.credentials()
        await asyncio.sleep(0)
        if credentials.authorization == valid:
            return True
        renewed = await rotated.access.renew(credentials)
        return renewed is not None and renewed.authorization == valid

    for _ in range(50):
        token = f"token-{next(numbers)}"
        replace(rotated.path, token.encode())
        valid = f"Bearer {token}"
        assert all(await asyncio.gather(*(call() for _ in range(100))))


class Certified:
    """A configuration with all TLS content in files."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock("2020-01-01T00:00:00Z")
        self.folder = folder
        self.put("ca.crt", authority().pem)
        self.introduce("first")
        fields = {"certificate-authority": "ca.crt"}
        user = {"client-certificate": "me.crt", "client-key": "me.key"}
        config = write(folder / "config", cluster=fields, user=user)
        self.access = kubeconfig_config(config, clock=self.clock)

    def put(self, name: str, content: bytes) -> None:
        replace(self.folder / name, content)

    def introduce(self, name: str) -> None:
        pair = authority().pair(name)
        self.put("me.crt", pair.certificate)
        self.put("me.key", pair.key)

    async def tls(self) -> ssl.SSLContext:
        await self.clock.advance(1)
        tls = (await self.access.credentials()).tls
        assert tls is not None
        return tls


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    return Certified(tmp_path)


async def test_a_new_client_certificate_is_used_for_new_connections(certified: Certified) -> None:
    async with tls_server(authority()) as port:
        first = await certified.tls()
        assert await certified.tls() is first
        assert await peer_name(port, first) == "first"
        certified.introduce("second")
        second = await certified.tls()
        assert second is not first
        assert await peer_name(port, second) == "second"


async def test_half_a_new_pair_is_waited_for(
    certified: Certified, caplog: pytest.LogCaptureFixture
) -> None:
    first = await certified.tls()
    second = authority().pair("second")
    certified.put("me.crt", second.certificate)
    for _ in range(3):
        assert await certified.tls() is first
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    certified.put("me.key", second.key)
    assert await certified.tls() is not first


async def test_a_new_authority_is_trusted(certified: Certified) -> None:
    other = authority("other")
    async with tls_server(other, clients=authority()) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await peer_name(port, await certified.tls())
        certified.put("ca.crt", authority().pem + other.pem)
        assert await peer_name(port, await certified.tls()) == "first"


async def test_an_expired_certificate_is_reported_until_it_is_replaced(
    certified: Certified,
) -> None:
    await certified.tls()
    # A day later it has expired.
    now = datetime.datetime.now(datetime.UTC).timestamp()
    certified.clock.step(now + 2 * 86400 - certified.clock.now() / 10**9)
    with pytest.raises(CredentialsError, match=r"me\.crt .*expired at 20\d\d-.*; renew it"):
        await certified.tls()
    lasting = authority().pair("second", lasts=datetime.timedelta(days=30))
    certified.put("me.crt", lasting.certificate)
    certified.put("me.key", lasting.key)
    await certified.tls()
