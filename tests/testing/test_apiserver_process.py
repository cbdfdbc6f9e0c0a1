"""A server in a child process, as a fixture for other projects."""

from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerProcess
from podstatus.testing.servers.access import TIMEOUT_SECONDS


def test_a_server_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    process = ApiServerProcess(tmp_path)
    access = process.start()
    try:
        with pytest.raises(RuntimeError, match="is already running; stop"):
            process.start()
        assert access.request("GET", "/api/v1/namespaces/default")[0] == 200
    finally:
        process.stop()


def test_a_paused_server_answers_when_it_goes_on(tmp_path: Path) -> None:
    process = ApiServerProcess(tmp_path)
    connection = process.start().connect()
    connection.connect()
    try:
        process.pause()
        connection.request("GET", "/readyz")
        assert connection.sock is not None
        connection.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.sock.recv(1)
        process.resume()
        connection.sock.settimeout(TIMEOUT_SECONDS)
        assert connection.sock.recv(1) == b"H"
    finally:
        connection.close()
        process.stop()


def test_a_paused_server_can_be_stopped(tmp_path: Path) -> None:
    process = ApiServerProcess(tmp_path)
    process.start()
    process.pause()
    process.stop()
    with pytest.raises(RuntimeError, match="is not running; start"):
        process.pause()
