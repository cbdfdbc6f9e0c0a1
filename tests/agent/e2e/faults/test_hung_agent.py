"""`--supervise` replaces an agent that hangs within 30 s, and none that is only slow."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.support.processes.agent_process import Document, condition, container, until
from tests.support.processes.process_node import command_pod, process_node

pytestmark = pytest.mark.slow

BUSY_SECONDS = 25.0
"""Longer than the silence after which an agent is replaced."""
COUNTS = 'n=0; while :; do n=$$((n+1)); echo "$$$$ $n"; sleep 1; done'
"""Prints its process ID and a number each second."""


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that are always busy."""
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def what_lasts(pod: Document) -> tuple[Document, Document]:
    """A restart or a flap of Ready would show."""
    return container(pod), condition(pod, "Ready")


def test_a_stopped_agent_is_replaced_within_30_s_and_its_containers_run_on() -> None:
    with process_node("--supervise", isolation="none") as node:
        cluster = node.start_ready()
        cluster.create(command_pod("counts", "sh", "-c", COUNTS))
        (before,) = cluster.wait_ready("counts")
        shim, hung = node.shim("counts"), node.endpoints()["pid"]
        os.kill(hung, signal.SIGSTOP)
        began = time.monotonic()
        until(lambda: node.endpoints().get("pid", hung) != hung, node.log)
        assert time.monotonic() - began < 30
        assert not psutil.pid_exists(hung)
        cluster = node.cluster
        event = cluster.wait_for_event("AgentRestarted", node.node, "the agent hung (its event ")
        assert event["type"] == "Warning"
        (line,) = (node.root_dir / "restarts.jsonl").read_text().splitlines()
        assert json.loads(line)["hung"].startswith("its event loop was silent for ")
        stacks = (node.root_dir / "logs/stacks.txt").read_text()
        assert "run_node.py" in stacks
        assert stacks in node.log()
        # By now the agent has said something about the pod.
        cluster.create(command_pod("later", "sleep", "1000"))
        cluster.wait_ready("later")
        (after,) = cluster.wait_ready("counts")
        assert what_lasts(after) == what_lasts(before)
        assert node.shim("counts") == shim
        lines = [line.split() for line in node.log_of("counts").splitlines()]
        assert len({pid for pid, _ in lines}) == 1
        assert [int(number) for _, number in lines] == list(range(1, len(lines) + 1))


def test_an_agent_that_is_only_slow_is_not_replaced() -> None:
    with process_node("--supervise", isolation="none") as node:
        cluster = node.start_ready()
        cluster.create(*(command_pod(f"pod-{number}", "sleep", "1000") for number in range(5)))
        cluster.wait_ready(*(f"pod-{number}" for number in range(5)))
        agent = node.endpoints()["pid"]
        with load(8):
            end = time.monotonic() + BUSY_SECONDS
            while time.monotonic() < end:
                assert node.endpoints()["pid"] == agent
                assert not (node.root_dir / "restarts.jsonl").exists()
                assert node.ask_text("/healthz") == "ok"
