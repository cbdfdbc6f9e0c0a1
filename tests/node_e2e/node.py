"""The agent as the only node, with the process runtime."""

import http
import signal
import sys
from http.client import HTTPException
from pathlib import Path

from podstatus.testing.servers.etcd import start_program, wait_until_ready
from podstatus.testing.servers.guarded_process import GuardedProcess
from tests.node_e2e.control_plane import ControlPlane

NODE = "e2e-node"
_AGENT = (sys.executable, "-P", "-c", "from podstatus.cli.main import main; main()")
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


def root_dir(folder: Path) -> Path:
    """Return the agent's root directory."""
    return folder / "node"


class Node:
    """`podstatus run`, with its files in a folder."""

    def __init__(self, control_plane: ControlPlane, folder: Path, *, ip: str) -> None:
        self._control_plane = control_plane
        self._root_dir = root_dir(folder)
        self._log = folder / "agent.log"
        self._ip = ip
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        """Start the agent; return when the Node is Ready. Raises StartError."""
        options = {
            "kubeconfig": self._control_plane.node.kubeconfig,
            "runtime": "process",
            "isolation": "bubblewrap",
            "hostname-override": NODE,
            "root-dir": self._root_dir,
            "register-with-taints": "",
            "node-ip": self._ip,
            "address": self._ip,
            # Tests dial this port by number.
            "port": 10250,
            "client-ca-file": self._control_plane.authority,
            "v": 4,
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        switches = ["--no-alerts", "--allow-unconfined-seccomp"]
        self._process = start_program([*_AGENT, "run", *switches, *flags], self._log)
        wait_until_ready(self._is_ready, self._process, "podstatus run", _START_SECONDS)

    def stop(self) -> None:
        """Stop the agent with SIGTERM."""
        process, self._process = self._process, None
        if process is not None:
            process.end(signal.SIGTERM, grace=_STOP_SECONDS)

    def _is_ready(self) -> bool:
        try:
            code, node = self._control_plane.admin.request("GET", f"/api/v1/nodes/{NODE}")
        except (OSError, HTTPException):
            return False
        if code != http.HTTPStatus.OK:
            return False
        conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
        return conditions.get("Ready") == "True"
