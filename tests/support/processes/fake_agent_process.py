"""`podstatus run` as a process around a fake agent, tests/agent/daemon/fake_agent.py."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.agent_process import ENVIRONMENT

HURRIED = "API server did not stop in time, killed it"
ROOT = Path(__file__).parents[3]


class FakeAgentProcess:
    """`podstatus run` around a fake node."""

    def __init__(self, behaviour: str, root: Path | None, *options: str) -> None:
        program = [sys.executable, "-m", "tests.agent.daemon.fake_agent", behaviour]
        where = () if root is None else ("--root-dir", str(root))
        self.process = subprocess.Popen(
            [*program, "run", *where, "--port", "0", *options],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.output = ""

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, ""):
            self.output += line
            if text in line:
                return

    def wait(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=120)
        # What a busy machine adds if it did not let the API server end in time.
        lines = [line for line in errors.splitlines(keepends=True) if HURRIED not in line]
        return self.process.returncode, "".join(lines)


@contextmanager
def fake_agent(behaviour: str, root: Path | None, *options: str) -> Iterator[FakeAgentProcess]:
    started = FakeAgentProcess(behaviour, root, *options)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.communicate()
