"""An etcd for tests: on loopback, one member, its objects in a folder that outlives it.

It does not wait for the disk: what it acknowledged survives a kill, but no power cut. Plain HTTP:
whoever may use this machine's loopback may read and write it while it runs.
"""

import http.client
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from podstatus.testing.servers.free_port import free_port
from podstatus.testing.servers.process import GuardedProcess

_HOST = "127.0.0.1"
_START_SECONDS = 90.0
"""It takes one or two; the machine may have other things to do."""
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02


class StartError(Exception):
    """A program did not start; the message says which, and ends with the last lines of its log."""


class Etcd:
    """The program, its data and its log in a folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._port, self._peer_port = free_port(), free_port()
        self._process: GuardedProcess | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{_HOST}:{self._port}"

    @property
    def process(self) -> GuardedProcess | None:
        """The running program."""
        return self._process if self._process is not None and self._process.running else None

    def start(self) -> None:
        """Serve what is in the folder, on the same port as before. Raises StartError."""
        if self.process is not None:
            return
        peers = f"http://{_HOST}:{self._peer_port}"
        options = {
            "name": "podstatus",
            "data-dir": self._folder / "etcd",
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"podstatus={peers}",
            # The server's caches of quiet resources learn from this how far the others are; without
            # it a consistent watch of them fails.
            "experimental-watch-progress-notify-interval": "250ms",
            "log-level": "warn",
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        log = self._folder / "etcd.log"
        self._process = start_program([self._program, *words, "--unsafe-no-fsync"], log)
        wait_until_ready(self._is_ready, self._process, "etcd", _START_SECONDS)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.end(number, grace=_STOP_SECONDS)

    def compact(self) -> int:
        """Forget every change up to now; the revision that is the oldest one known."""
        revision = int(self._post("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._post("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def _is_ready(self) -> bool:
        try:
            return bool(self._post("/v3/maintenance/status", {})["leader"])
        except (OSError, http.client.HTTPException, KeyError):
            return False

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=_STOP_SECONDS)
        try:
            connection.request("POST", path, msgspec.json.encode(body))
            response = connection.getresponse()
            answer: dict[str, Any] = msgspec.json.decode(response.read() or b"{}")
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise OSError(f"etcd refused {path}: {answer.get('message', response.status)}")
        return answer


def start_program(command: Sequence[str | Path], log: Path) -> GuardedProcess:
    """Start a program. Raises StartError if it is not there or not executable."""
    try:
        return GuardedProcess(command, log)
    except OSError as error:
        raise StartError(f"{error}; see docs/real-servers.md for how to get it") from error


def wait_until_ready(
    is_ready: Callable[[], bool], process: GuardedProcess, name: str, seconds: float
) -> None:
    """Wait for a program to serve. Ends it and raises StartError if it does not."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        if process.wait(_POLL_SECONDS):
            raise StartError(f"{name} ended before it served; {_failure_details(process)}")
        if time.monotonic() > deadline:
            process.end(signal.SIGKILL)
            raise StartError(
                f"{name} did not serve within {seconds:.0f} s; {_failure_details(process)}"
            )


def _failure_details(process: GuardedProcess) -> str:
    return f"the end of {process.log}:\n{process.log_tail()}"
