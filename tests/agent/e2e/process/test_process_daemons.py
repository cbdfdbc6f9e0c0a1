"""All processes of a container end with it, however they detach, and none before."""

import time
import uuid
from collections.abc import Iterator

import psutil
import pytest

from tests.support.processes.agent_process import Document, until
from tests.support.processes.process_node import (
    ISOLATIONS,
    PYTHON,
    ProcessNode,
    pod_of,
    process_node,
)

pytestmark = pytest.mark.slow

GRACE = 3
BUSY_SECONDS = 60
"""That a machine may take for what takes a moment."""
GRACEFUL = {"terminationGracePeriodSeconds": GRACE}
DAEMON = """
import os, signal, sys, time
stubborn = sys.argv[1] == "stubborn"
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.closerange(0, 1024)
        time.sleep(1000)
    os._exit(0)
os.wait()
if not stubborn:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print("ready", flush=True)
time.sleep(float(sys.argv[2]))
os._exit(3)
"""
"""Forks twice, begins a session, closes its files, ignores signals: as daemons do."""


@pytest.fixture(scope="module", params=ISOLATIONS)
def node(request: pytest.FixtureRequest) -> Iterator[ProcessNode]:
    with process_node(isolation=request.param) as node:
        node.start_ready()
        yield node


def daemon(mark: str, *, stubborn: bool, seconds: float = 1000) -> Document:
    """A container that starts a daemon and lives for so long itself."""
    kind = "stubborn" if stubborn else "polite"
    return {"command": [PYTHON, "-I", "-S", "-c", DAEMON, kind, str(seconds), mark]}


def running(mark: str) -> list[int]:
    """The processes that belong to a container, daemons and all; not those that lead to it."""
    found = []
    for process in psutil.process_iter(["cmdline", "name", "status"]):
        words = process.info["cmdline"] or []
        if words[-1:] == [mark] and "python" in words[0] and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


def start(node: ProcessNode, *containers: Document, **spec: object) -> str:
    """Start a pod, and wait until each of its containers has its daemon; its name."""
    name = f"p-{uuid.uuid4().hex[:8]}"
    node.cluster.create(pod_of(name, *containers, **{**GRACEFUL, **spec}))
    for number in range(len(containers)):
        node.wait_for_log(name, "ready", f"c{number}")
    return name


def test_who_ignores_the_stop_signal_lives_for_its_grace_and_no_longer(node: ProcessNode) -> None:
    mark = uuid.uuid4().hex
    name = start(node, daemon(mark, stubborn=True))
    assert len(running(mark)) == 2
    asked = time.monotonic()
    node.cluster.delete(name)
    until(lambda: len(running(mark)) < 2)
    lived = time.monotonic() - asked
    node.cluster.wait_gone(name)
    assert running(mark) == []
    assert GRACE - 0.2 < lived < GRACE + BUSY_SECONDS


def test_daemons_end_with_a_command_that_ends(node: ProcessNode) -> None:
    mark = uuid.uuid4().hex
    name = start(node, daemon(mark, stubborn=False), terminationGracePeriodSeconds=300)
    assert len(running(mark)) == 2
    node.cluster.delete(name)
    node.cluster.wait_gone(name)
    assert running(mark) == []


def test_daemons_of_one_container_live_on_when_those_of_another_one_end(node: ProcessNode) -> None:
    short, long = uuid.uuid4().hex, uuid.uuid4().hex
    name = start(
        node,
        daemon(short, stubborn=True, seconds=2),
        daemon(long, stubborn=True),
        restartPolicy="Never",
    )
    before = running(long)
    assert len(before) == 2

    def has_ended(pod: Document) -> bool:
        one, _ = sorted(pod["status"]["containerStatuses"], key=lambda status: status["name"])
        return bool(one["state"].get("terminated", {}).get("exitCode") == 3)

    pod = node.cluster.wait_for(name, has_ended)
    assert running(short) == []
    assert running(long) == before
    _, other = sorted(pod["status"]["containerStatuses"], key=lambda status: status["name"])
    assert "running" in other["state"]
    node.cluster.delete(name)
    node.cluster.wait_gone(name)
    assert running(long) == []
