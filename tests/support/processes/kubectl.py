"""kubectl as users have it, against a server of ours."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.programs import ApiServerProcess

KUBECTL = shutil.which("kubectl")
HOW_TO_GET_IT = (
    "no kubectl on PATH: install 1.32 or newer, e.g. Debian trixie's kubernetes-client package"
)


class Ran(msgspec.Struct, frozen=True):
    """What a command said."""

    code: int
    out: str
    errors: str


class Kubectl:
    """Runs kubectl with a kubeconfig and a home of its own."""

    def __init__(self, server: ApiServerProcess | ServerAccess, home: Path) -> None:
        self.command = [str(KUBECTL), f"--kubeconfig={server.kubeconfig}"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def run(self, *arguments: str, input: str | None = None) -> Ran:
        """Whatever comes of it."""
        done = subprocess.run(
            [*self.command, *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, input: str | None = None) -> str:
        """The output; nothing may go wrong, and nothing be complained of."""
        ran = self.run(*arguments, input=input)
        assert (ran.code, ran.errors) == (0, ""), f"kubectl {' '.join(arguments)}: {ran}"
        return ran.out

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on; killed at the end."""
        process = subprocess.Popen(
            [*self.command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
