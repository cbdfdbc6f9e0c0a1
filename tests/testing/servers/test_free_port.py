"""Ports that stay free for a server, also across restarts."""

import secrets
import socket
from pathlib import Path

import pytest

from podstatus.testing.servers import free_port as module
from podstatus.testing.servers.free_port import free_port


@pytest.mark.parametrize("text", ["32768\t60999\n", "10001 65535", "1024 65534"])
def test_it_is_none_that_the_kernel_gives_to_those_who_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    range_file = tmp_path / "range"
    range_file.write_text(text)
    monkeypatch.setattr(module, "_EPHEMERAL_RANGE_FILE", range_file)
    first, last = map(int, text.split())
    port = free_port()
    assert not first <= port <= last
    assert port >= 10_000


def test_where_the_kernel_takes_all_of_them_it_is_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    range_file = tmp_path / "range"
    range_file.write_text("1024 65535")
    monkeypatch.setattr(module, "_EPHEMERAL_RANGE_FILE", range_file)
    assert free_port() > 0


def test_where_the_kernel_says_nothing_its_usual_range_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EPHEMERAL_RANGE_FILE", tmp_path / "nothing")
    assert not 32768 <= free_port() <= 60999


def test_a_port_in_use_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        offered = iter([port, port + 1, port + 2, port + 3])
        monkeypatch.setattr(secrets, "choice", lambda _: next(offered))
        assert free_port() > port
