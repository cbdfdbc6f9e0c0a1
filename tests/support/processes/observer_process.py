"""The observer as a process: `podstatus observe` on an API server that runs."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.processes.agent_process import ENVIRONMENT, SECONDS, until

Document = dict[str, Any]


class ObserverProcess:
    """`podstatus observe`, with a folder of its own."""

    def __init__(self, folder: Path, kubeconfig: Path, *options: str) -> None:
        self.root_dir = folder / "observer"
        self._log = folder / "observer.log"
        self.words = [
            *(sys.executable, "-m", "tests.support.processes.gc_on_signal", "observe"),
            *("--kubeconfig", str(kubeconfig), "--root-dir", str(self.root_dir)),
            *("--port", "0", "-v", "2", *options),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; come back when it can be asked."""
        environment = ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[3])}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self.words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
            )
        until(lambda: self._endpoints().get("pid") == self.pid, self.log)

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        return self.process.pid

    def ask(self, path: str) -> Document:
        """What it answers."""
        code, body = self.ask_plain(path)
        assert code == 200, body
        found: Document = json.loads(body)
        return found

    def ask_plain(self, path: str, token: str | None = None) -> tuple[int, str]:
        """Code and text, for one who has this token; its own if it is None."""
        told = self._endpoints()
        token = told["token"] if token is None else token
        where = urlsplit(told["agent"])
        context = ssl.create_default_context(cafile=told["agent_certificate"])
        connection = HTTPSConnection(
            where.hostname or "", where.port, context=context, timeout=SECONDS
        )
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def pods(self) -> dict[str, Document]:
        """All that are on its board, by UID."""
        found: dict[str, Document] = {}
        after = ""
        while True:
            page = self.ask(f"/v1/pods?limit=500&continue={after}")
            found |= {pod["uid"]: pod for pod in page["pods"]}
            after = page.get("continue", "")
            if not after:
                return found

    def wait_pods(self, is_right: Callable[[dict[str, Document]], object]) -> None:
        """Come back when its board is right."""
        until(lambda: is_right(self.pods()) or None, lambda: (len(self.pods()), self.log()))

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let it do nothing for a while."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def memory(self) -> tuple[int, int]:
        """Bytes that it has in memory after a collection, and has had at most."""
        os.kill(self.pid, signal.SIGUSR1)
        self.ask("/v1/status")
        words = Path(f"/proc/{self.pid}/status").read_text().split()
        return tuple(int(words[words.index(it) + 1]) * 1024 for it in ("VmRSS:", "VmHWM:"))  # type: ignore[return-value]

    def stop(self) -> int:
        """End it in peace; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def _endpoints(self) -> Document:
        try:
            told: Document = json.loads((self.root_dir / "endpoints.json").read_bytes())
        except FileNotFoundError:
            return {}
        return told


@contextmanager
def observer(folder: Path, kubeconfig: Path, *options: str) -> Iterator[ObserverProcess]:
    """The observer, not started yet, and ended at the end."""
    made = ObserverProcess(folder, kubeconfig, *options)
    try:
        yield made
    finally:
        made.kill()
