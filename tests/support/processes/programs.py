"""Programs that tests start: the `podstatus` command, as a user has it."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = [sys.executable, "-c", "from podstatus.cli.main import main; main()"]


class ApiServerProcess:
    """`podstatus apiserver`, serving."""

    def __init__(self, *options: str) -> None:
        # No surprises from the settings of whoever runs the tests: colours, widths, Python's own.
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TERM": ""}
        self.process = subprocess.Popen(
            [*COMMAND, "apiserver", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        # It is there once it says how to use it; if it cannot, its output just ends.
        lines = iter(self.process.stdout.readline, "")
        self.told = ""
        for line in lines:
            self.told += line
            if "kubectl" in line:
                break

    @property
    def kubeconfig(self) -> Path:
        words = shlex.split(self.told.splitlines()[-1])
        return Path(words[words.index("--kubeconfig") + 1])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; its exit code and what it complained of."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """The exit code and what it complained of."""
        _, errors = self.process.communicate(timeout=90)
        return self.process.returncode, errors


@contextmanager
def api_server(*options: str) -> Iterator[ApiServerProcess]:
    """The server as a process, ended at the end. On a port that is free, unless told."""
    options = options if "--port" in options else (*options, "--port", "0")
    server = ApiServerProcess(*options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end()
