"""The agent as a process, on a server and a node of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.api_servers import Client
from tests.programs import COMMAND

_START_SECONDS = 30.0


class AgentProcess:
    """`podstatus run` on the simulated runtime, as a node of a server that runs already."""

    def __init__(self, folder: Path, kubeconfig: Path, node: str, *options: str) -> None:
        self.folder = folder
        self.node = node
        self.root_dir = folder / "root"
        self.manifests = folder / "manifests"
        self.manifests.mkdir(exist_ok=True)
        self._log = folder / "agent.log"
        self._pid = folder / "pid"
        """Of the newest one, also if the restart command has started it."""
        self._words = [
            *(*COMMAND, "run", "--root-dir", str(self.root_dir)),
            *("--kubeconfig", str(kubeconfig), "--hostname-override", node),
            *("--runtime", "simulated", "--node-capacity", "cpu=2", "--port", "0"),
            *("--pod-manifest-path", str(self.manifests), *options),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._words, stdout=log, stderr=log)
        self._pid.write_text(str(self.process.pid))

    def wait_ready(self, client: Client) -> None:
        """Come back when its Node is Ready. Fails with what it had to say."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_ready(client):
            ended = self.process is None or self.process.poll() is not None
            assert not ended, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def stop(self) -> int:
        """End it in peace; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self._log.read_text()[-4000:]

    def restart_command(self) -> str:
        """A shell command that kills it, leaves it down for a while and starts it again."""
        script = self.folder / "restart.py"
        script.write_text(
            "import os, signal, subprocess, time\n"
            f"os.kill(int(open({str(self._pid)!r}).read()), signal.SIGKILL)\n"
            "time.sleep(float(os.environ['DOWN_SECONDS']))\n"
            f"log = open({str(self._log)!r}, 'ab')\n"
            f"child = subprocess.Popen({self._words!r}, stdout=log, stderr=log,"
            " start_new_session=True)\n"
            f"open({str(self._pid)!r}, 'w').write(str(child.pid))\n"
        )
        return f"{sys.executable} {script}"

    def end_successor(self) -> None:
        """End the one that the restart command has started."""
        with suppress(ProcessLookupError):
            os.kill(int(self._pid.read_text()), signal.SIGKILL)

    def _is_ready(self, client: Client) -> bool:
        code, node = client.get(f"/api/v1/nodes/{self.node}")
        conditions = node.get("status", {}).get("conditions", []) if code == 200 else []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@contextmanager
def running_agent(
    folder: Path, kubeconfig: Path, node: str, client: Client, *options: str
) -> Iterator[AgentProcess]:
    """The agent, ready, and ended at the end."""
    agent = AgentProcess(folder, kubeconfig, node, *options)
    agent.start()
    try:
        agent.wait_ready(client)
        yield agent
    finally:
        agent.kill()
        agent.end_successor()


def read_records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
