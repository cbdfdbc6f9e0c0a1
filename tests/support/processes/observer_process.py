"""The observer as a process: `podstatus observe` on an API server that runs."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.agent_process import ENVIRONMENT, AgentProcess, Document, until


class ObserverProcess(AgentProcess):
    """`podstatus observe`, with a folder of its own."""

    def __init__(self, folder: Path, kubeconfig: Path, *options: str) -> None:
        super().__init__(folder / "observer")
        self.words = [
            *(sys.executable, "-m", "tests.support.processes.gc_on_signal", "observe"),
            *("--kubeconfig", str(kubeconfig), "--root-dir", str(self.root_dir)),
            *("--port", "0", "-v", "2", *options),
        ]
        self.environment = ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[3])}

    def start(self) -> None:
        """Start it; come back when it can be asked."""
        super().start()
        self.wait_serving()

    @property
    def pid(self) -> int:
        pid: int = self.wait_serving()["pid"]
        return pid

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


@contextmanager
def observer(folder: Path, kubeconfig: Path, *options: str) -> Iterator[ObserverProcess]:
    """The observer, not started yet, and ended at the end."""
    made = ObserverProcess(folder, kubeconfig, *options)
    try:
        yield made
    finally:
        made.kill()
