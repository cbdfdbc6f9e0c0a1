"""Exec plugins for tests: real programs, each run noted in a file."""

import json
import sys
from pathlib import Path
from typing import Any

from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.testing.clock import FakeClock
from tests.client.kubeconfigs import Document, write

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

_NOTED = """#!{python} -IS
import os, sys
with open({runs!r}, "a") as runs:
    runs.write("run\\n")
{body}
"""


class Plugin:
    """A plugin in a directory, and a configuration that uses it, in virtual time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.path = folder / "plugin"
        self.answer_path = folder / "answer"
        self._runs = folder / "runs"

    def program(self, body: str) -> "Plugin":
        """Set the Python code of the plugin."""
        text = _NOTED.format(python=sys.executable, runs=str(self._runs), body=body)
        new = self.folder / "plugin.new"
        new.write_text(text)
        new.chmod(0o755)
        new.replace(self.path)
        return self

    def prints(self, text: str | bytes) -> "Plugin":
        """Let the plugin print this text."""
        self.answer_path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.program(f"sys.stdout.write(open({str(self.answer_path)!r}, newline='').read())")

    def says(self, token: str = "", **status: Any) -> "Plugin":
        """Let the plugin return this status."""
        return self.prints(json.dumps(answer(token=token, **status)))

    @property
    def runs(self) -> int:
        """Return how often the plugin was run."""
        return len(self._runs.read_text().splitlines()) if self._runs.exists() else 0

    def access(
        self, *, seconds: float = 20.0, cluster: Document | None = None, **fields: Any
    ) -> ResolvedClientConfig:
        """Return the configuration of a kubeconfig with this plugin."""
        plugin = {"command": "./plugin", "apiVersion": V1, "interactiveMode": "Never", **fields}
        path = write(self.folder / "config", cluster=cluster or {}, user={"exec": plugin})
        return kubeconfig_config(path, clock=self.clock, plugin_seconds=seconds)


def answer(api_version: str = V1, **status: Any) -> Document:
    """Return an ExecCredential with this status."""
    return {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
