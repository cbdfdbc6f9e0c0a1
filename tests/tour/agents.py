"""The agent as a process, on a server and a node of its own, and a command that restarts it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.agent_process import ENVIRONMENT, AgentProcess, Cluster


class TouringAgent(AgentProcess):
    """An agent with a folder of manifests, that the judge of the tour can restart."""

    def __init__(self, folder: Path, kubeconfig: Path, node: str, *options: str) -> None:
        self.manifests = folder / "manifests"
        self.manifests.mkdir(exist_ok=True)
        options = ("--pod-manifest-path", str(self.manifests), *options)
        super().__init__(folder, *options, kubeconfig=kubeconfig, node=node)
        self._pid = folder / "pid"
        """Of the newest one, also if the restart command has started it."""
        self.python_path = ""
        """Where another version of it is; empty: this one."""

    def start(self) -> None:
        """Start it."""
        self.environment = {**ENVIRONMENT, "PYTHONPATH": self.python_path}
        super().start()
        assert self.process is not None
        self._pid.write_text(str(self.process.pid))

    def restart_command(self) -> str:
        """A shell command that kills it, leaves it down for a while and starts it again."""
        script = self.folder / "restart.py"
        script.write_text(
            "import os, signal, subprocess, time\n"
            f"os.kill(int(open({str(self._pid)!r}).read()), signal.SIGKILL)\n"
            "time.sleep(float(os.environ['DOWN_SECONDS']))\n"
            f"log = open({str(self.folder / 'agent.log')!r}, 'ab')\n"
            f"child = subprocess.Popen({self.words!r}, stdout=log, stderr=log,"
            " start_new_session=True)\n"
            f"open({str(self._pid)!r}, 'w').write(str(child.pid))\n"
        )
        return f"{sys.executable} {script}"

    def end_successor(self) -> None:
        """End the one that the restart command has started."""
        with suppress(ProcessLookupError):
            os.kill(int(self._pid.read_text()), signal.SIGKILL)


@contextmanager
def running_agent(
    folder: Path, kubeconfig: Path, node: str, seen_by: ServerAccess, *options: str
) -> Iterator[TouringAgent]:
    """The agent, ready, and ended at the end."""
    agent = TouringAgent(folder, kubeconfig, node, *options)
    agent.start()
    try:
        agent.wait_ready(Cluster(seen_by, node))
        yield agent
    finally:
        agent.kill()
        agent.end_successor()
