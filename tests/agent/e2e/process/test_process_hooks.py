"""Hooks of real processes, and agents that stop during them."""

import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.agent_process import Cluster, Document, until
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_node import (
    ISOLATIONS,
    MortalNode,
    commands,
    pod_of,
    processes_with,
    ready_node,
)

pytestmark = pytest.mark.slow

NODE = {"bubblewrap": NODES[8], "none": NODES[9]}
GRACE = 200
RUNS = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait")
UNTIL_TOLD = "trap 'exit 0' USR1; while :; do sleep 0.1; done"


@pytest.fixture
def word() -> str:
    """Tells the command of a hook from everything else."""
    return f"word-{uuid.uuid4().hex}"


def hooked(node: MortalNode, hook: str, command: str) -> Document:
    pod = pod_of("p", *RUNS, node=node.node, terminationGracePeriodSeconds=GRACE)
    (container,) = pod["spec"]["containers"]
    container["lifecycle"] = {hook: {"exec": {"command": ["sh", "-c", command]}}}
    return pod


@pytest.fixture(params=ISOLATIONS)
def scene(
    request: pytest.FixtureRequest, each_server: Server, tmp_path: Path
) -> Iterator[tuple[MortalNode, Cluster]]:
    with ready_node(each_server, tmp_path, request.param, NODE[request.param]) as ready:
        yield ready


def end_in_peace(node: MortalNode) -> None:
    began = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - began < GRACE / 4, "it does not wait"


ENDS: list[Any] = [
    pytest.param(MortalNode.kill, id="killed"),
    pytest.param(end_in_peace, id="stopped"),
]


@pytest.mark.parametrize("end", ENDS)
def test_a_container_is_let_in_if_its_agent_ends_during_its_first_hook(
    scene: tuple[MortalNode, Cluster], word: str, end: Callable[[MortalNode], None]
) -> None:
    node, cluster = scene
    cluster.create(hooked(node, "postStart", f": {word}; sleep 500"))
    until(lambda: processes_with(word), node.log)
    end(node)
    until(lambda: not processes_with(word))
    node.start()
    (pod,) = cluster.wait_ready("p")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not processes_with(word)
    cluster.delete("p")
    cluster.wait_gone("p")


@pytest.mark.parametrize("end", ENDS)
def test_a_prestop_hook_is_restarted_if_the_agent_stops_during_it(
    scene: tuple[MortalNode, Cluster], word: str, end: Callable[[MortalNode], None]
) -> None:
    node, cluster = scene
    cluster.create(hooked(node, "preStop", f": {word}; {UNTIL_TOLD}"))
    cluster.wait_ready("p")
    cluster.delete("p")
    until(lambda: processes_with(word), node.log)
    end(node)
    until(lambda: not processes_with(word))
    assert cluster.pod("p") is not None
    node.start()
    for shell in until(lambda: commands("sh", word), node.log):
        shell.send_signal(signal.SIGUSR1)
    cluster.wait_gone("p")
    assert not processes_with(word)
