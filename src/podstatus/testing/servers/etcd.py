"""An etcd for tests: one member on loopback, with a data directory that outlives it.

It does not fsync: acknowledged writes survive SIGKILL, but not a power loss. It serves plain HTTP
without authentication: every user of this machine can read and write it while it runs.
"""

import http.client
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from podstatus.testing.servers.free_port import free_port
from podstatus.testing.servers.guarded_process import GuardedProcess

_HOST = "127.0.0.1"
_START_SECONDS = 90.0
"""It takes one or two seconds; more on a loaded machine."""
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02


class StartError(Exception):
    """A program did not start; the message ends with the last lines of its log."""


class Etcd:
    """An etcd process with its data and log in a directory."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._port, self._peer_port = free_port(), free_port()
        self._process: GuardedProcess | None = None

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._port}"

    @property
    def process(self) -> GuardedProcess | None:
        """The running process, None if there is none."""
        return self._process if self._process is not None and self._process.running else None

    def start(self) -> None:
        """Start with the existing data, on the same port as before. Raises StartError."""
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
            # Progress notifications keep the server's caches of idle resources current; without
            # them a consistent watch fails after 3 s. Each one costs CPU for every resource.
            "experimental-watch-progress-notify-interval": "1s",
            "log-level": "warn",
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        log = self._folder / "etcd.log"
        self._process = start_program([self._program, *flags, "--unsafe-no-fsync"], log)
        wait_until_ready(self._is_ready, self._process, "etcd", _START_SECONDS)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Stop the process with this signal, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.end(number, grace=_STOP_SECONDS)

    def compact(self) -> int:
        """Compact the whole history; return the oldest revision that is left."""
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
            document: dict[str, Any] = msgspec.json.decode(response.read() or b"{}")
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise OSError(f"etcd rejected {path}: {document.get('message', response.status)}")
        return document


def start_program(command: Sequence[str | Path], log: Path) -> GuardedProcess:
    """Start a program with its output in `log`. Raises StartError."""
    try:
        return GuardedProcess(command, log)
    except OSError as error:
        raise StartError(
            f"{error}; see docs/how-to/test-against-kube-apiserver.md for how to get it"
        ) from error


def wait_until_ready(
    is_ready: Callable[[], bool], process: GuardedProcess, name: str, seconds: float
) -> None:
    """Wait until a program serves. Kills it and raises StartError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        if process.wait(_POLL_SECONDS):
            raise StartError(f"{name} exited before it was ready; {_failure_details(process)}")
        if time.monotonic() > deadline:
            process.end(signal.SIGKILL)
            raise StartError(
                f"{name} was not ready within {seconds:.0f} s; {_failure_details(process)}"
            )


def _failure_details(process: GuardedProcess) -> str:
    return f"last lines of {process.log}:\n{process.log_tail()}"
