"""The state directory, certificates and token, across restarts."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import ssl
import stat
import threading
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
import yaml

from podstatus.apiserver.pki.certificates import Certificates, renew_periodically
from podstatus.apiserver.pki.key_pair import LOOPBACK_NAMES
from podstatus.apiserver.pki.token_and_kubeconfig import (
    ClientCredentials,
    ensure_token,
    write_client_files,
)
from podstatus.apiserver.state_dir import StateDir, StateDirError, StateDirLockedError
from podstatus.testing.clock import FakeClock

FOR_CLIENTS = ("kubeconfig", "endpoints.json")
DAY = 24 * 3600 * 10**9
NOW = 1_763_000_000 * 10**9


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StateDir]:
    state_dir = StateDir(tmp_path / "new" / "server")
    yield state_dir
    state_dir.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_is_the_owners_alone(folder: StateDir) -> None:
    authority = Certificates(folder, NOW).ensure()
    access = ClientCredentials(
        url="https://127.0.0.1:1", token=ensure_token(folder), authority=authority
    )
    write_client_files(folder, access)
    assert mode(folder.path) == 0o700
    assert {path.name: mode(path) for path in folder.path.iterdir()} == dict.fromkeys(
        (
            "lock",
            *("ca.crt", "ca.key", "server.crt", "server.key", "client.crt", "client.key"),
            "token",
            *FOR_CLIENTS,
        ),
        0o600,
    )


def test_a_folder_is_one_servers(folder: StateDir) -> None:
    with pytest.raises(StateDirLockedError, match="in use by another API server"):
        StateDir(folder.path)


def _hold(path: Path, ready: Event) -> None:
    StateDir(path)
    ready.set()
    threading.Event().wait()


def test_a_killed_server_leaves_no_lock_behind(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    holder = spawn.Process(target=_hold, args=(tmp_path, ready))
    holder.start()
    assert ready.wait(30)
    with pytest.raises(StateDirLockedError):
        StateDir(tmp_path)
    holder.kill()
    holder.join()
    StateDir(tmp_path).close()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StateDirError, match=r"cannot use .*/file/sub: .*choose a directory"):
        StateDir(tmp_path / "file" / "sub")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StateDirError, match="permission denied"):
        StateDir(tmp_path)


def shake_hands(folder: StateDir, authority: bytes, name: str) -> None:
    """Connect a client that trusts the CA to a server of that name, in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context(cadata=authority.decode())
    client = trusting.wrap_bio(down, up, server_hostname=name)
    server = Certificates(folder, NOW).server_context().wrap_bio(up, down, server_side=True)
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.version() == server.version() == "TLSv1.3"


@pytest.mark.parametrize("name", [*LOOPBACK_NAMES, "node.example"])
def test_clients_that_trust_the_authority_trust_the_server(folder: StateDir, name: str) -> None:
    authority = Certificates(folder, time.time_ns()).ensure(["node.example"])
    shake_hands(folder, authority, name)


def test_another_name_is_not_trusted(folder: StateDir) -> None:
    authority = Certificates(folder, time.time_ns()).ensure()
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(folder, authority, "node.example")


def files(folder: StateDir) -> dict[str, bytes | None]:
    return {name: folder.read(name) for name in ("ca.crt", "ca.key", "server.crt", "server.key")}


def changed(folder: StateDir, before: dict[str, bytes | None]) -> set[str]:
    return {name for name, content in files(folder).items() if content != before[name]}


def test_certificates_are_kept(folder: StateDir) -> None:
    authority = Certificates(folder, NOW).ensure()
    before = files(folder)
    assert Certificates(folder, NOW + 300 * DAY).ensure() == authority
    assert not changed(folder, before)


@pytest.mark.parametrize(
    ("days", "renewed"),
    [
        (334, set()),
        (336, {"server.crt", "server.key"}),
        (366, {"server.crt", "server.key"}),
        (3619, {"server.crt", "server.key"}),
        (3621, {"ca.crt", "ca.key", "server.crt", "server.key"}),
        (-1, {"ca.crt", "ca.key", "server.crt", "server.key"}),
    ],
)
def test_certificates_are_renewed_before_they_expire(
    folder: StateDir, days: int, renewed: set[str]
) -> None:
    Certificates(folder, NOW).ensure()
    before = files(folder)
    Certificates(folder, NOW + days * DAY).ensure()
    assert changed(folder, before) == renewed


def test_a_new_name_needs_a_new_certificate_from_the_same_authority(folder: StateDir) -> None:
    Certificates(folder, NOW).ensure()
    before = files(folder)
    Certificates(folder, NOW).ensure(["10.0.0.7"])
    assert changed(folder, before) == {"server.crt", "server.key"}


@pytest.mark.parametrize("lost", ["ca.crt", "ca.key"])
def test_a_lost_authority_is_replaced_with_what_it_signed(folder: StateDir, lost: str) -> None:
    Certificates(folder, NOW).ensure()
    before = files(folder)
    (folder.path / lost).unlink()
    Certificates(folder, NOW).ensure()
    assert changed(folder, before) == set(before)


def test_a_crash_between_key_and_certificate_is_noticed(folder: StateDir) -> None:
    Certificates(folder, NOW).ensure()
    other = folder.read("ca.key")
    assert other is not None
    folder.write("server.key", other)
    Certificates(folder, NOW).ensure()
    Certificates(folder, NOW).server_context()


def test_a_damaged_certificate_is_named(folder: StateDir) -> None:
    Certificates(folder, NOW).ensure()
    folder.write("ca.crt", b"mush")
    with pytest.raises(StateDirError, match=r"ca\.crt and \.key are damaged.*remove both"):
        Certificates(folder, NOW).ensure()


def test_the_token_is_kept_and_hard_to_guess(folder: StateDir, tmp_path: Path) -> None:
    token = ensure_token(folder)
    assert len(token) >= 43
    assert ensure_token(folder) == token
    other = StateDir(tmp_path / "other")
    assert ensure_token(other) != token
    other.close()


@pytest.mark.parametrize("content", [b"", b"short\n", b"two words and more\n", b"\xff" * 40])
def test_a_file_without_a_token_opens_no_door(folder: StateDir, content: bytes) -> None:
    folder.write("token", content)
    with pytest.raises(StateDirError, match="token holds no token"):
        ensure_token(folder)


def test_clients_find_what_they_need(folder: StateDir) -> None:
    access = ClientCredentials(url="https://127.0.0.1:6443", token="t" * 20, authority=b"PEM")
    path = write_client_files(folder, access)
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": "UEVN",
    }
    assert config["users"][0]["user"] == {"token": "t" * 20}
    assert config["contexts"][0]["name"] == config["current-context"]
    endpoints = json.loads((folder.path / "endpoints.json").read_text())
    assert endpoints == {"apiserver": "https://127.0.0.1:6443", "token": "t" * 20}


def test_a_running_server_renews_what_its_authority_signed(folder: StateDir) -> None:
    authority = Certificates(folder, NOW).ensure()
    before = files(folder)
    assert not Certificates(folder, NOW + 300 * DAY).renew()
    later = Certificates(folder, NOW + 2 * 365 * DAY)
    assert later.renew()
    assert changed(folder, before) == {"server.crt", "server.key"}
    assert not later.renew()
    later.load(later.server_context())
    # The clock goes back: certificates issued later are still valid.
    assert not Certificates(folder, NOW + DAY).renew()
    assert folder.read("ca.crt") == authority


@pytest.mark.parametrize("days", [-10, 3650])
def test_an_authority_that_clients_trust_is_not_replaced_while_it_is_used(
    folder: StateDir, days: int
) -> None:
    Certificates(folder, NOW).ensure()
    before = files(folder)
    assert not Certificates(folder, NOW + days * DAY).renew()
    assert changed(folder, before) == set()


async def test_it_is_looked_at_while_the_server_runs(folder: StateDir) -> None:
    async with asyncio.timeout(30):
        clock = FakeClock()
        certificates = Certificates(folder, clock.now())
        certificates.ensure()
        before = files(folder)
        hosts, context = ["node.example"], certificates.server_context()
        keeping = asyncio.create_task(renew_periodically(folder, context, hosts, clock))
        await clock.advance(10)
        while changed(folder, before) != {"server.crt", "server.key"}:  # noqa: ASYNC110 - a thread
            await asyncio.sleep(0.01)
        keeping.cancel()
        await asyncio.wait({keeping})
