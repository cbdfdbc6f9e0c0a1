"""Agents that die, hang or lose their machine, on both control planes."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil
import pytest

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from tests.servers.nodes.scene import BOTH, Scene, tolerating
from tests.servers.pods import created, pods
from tests.support.processes.agent_process import SECONDS, condition, container
from tests.support.processes.api_servers import NODES, Document, Server
from tests.support.processes.process_node import ProcessNode, command_pod, process_node

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

POLICY = NodeMonitorPolicy(
    node_monitor_period=1,
    node_monitor_grace_period=8,
    node_startup_grace_period=60,
    node_eviction_rate=20,
)
LEASE_SECONDS = 8
"""Renewed every 2 s."""
RETURN_SECONDS = 10.0
KILLED, STOPPED, POWERLESS = NODES[:3]
OTHERS = ("ready-1", "ready-2", "ready-3")
"""So many that fewer than 55% of the nodes are not Ready."""


class Agents:
    """A node each, with a pod that stays and one that is evicted."""

    def __init__(self, scene: Scene, nodes: dict[str, ProcessNode]) -> None:
        self.scene = scene
        self.nodes = nodes

    @classmethod
    @contextmanager
    def on(cls, scene: Scene) -> Iterator["Agents"]:
        with ExitStack() as stack:
            nodes = {}
            for name in (KILLED, STOPPED, POWERLESS):
                access = scene.server.node_access(name)
                options = ("--kubeconfig", str(access.kubeconfig), "--register-with-taints", "")
                lease = ("--node-lease-duration-seconds", str(LEASE_SECONDS))
                node = process_node(*options, *lease, isolation="none", name=name)
                nodes[name] = stack.enter_context(node)
                nodes[name].start()
            yield cls(scene, nodes)

    def wait_ready(self) -> None:
        stories = self.scene.stories
        for name in self.nodes:
            self.scene.wait_no_schedule(name)
            stories.wait_newest("nodes", name, is_ready)

    def run_pods(self) -> None:
        brief = tolerating(*BOTH, seconds=2)
        for name in self.nodes:
            self._create(f"stays-{name}", nodeName=name)
            self._create(f"evicted-{name}", nodeName=name, tolerations=brief)
        for name in self.nodes:
            for pod in (f"stays-{name}", f"evicted-{name}"):
                self.scene.stories.wait_newest("pods", pod, is_ready)

    def create_waiting(self) -> None:
        """Pods that only fit on one node each; come back when they were refused there."""
        for name in self.nodes:
            self._create(f"waiting-{name}", nodeSelector={"kubernetes.io/hostname": name})
        for name in self.nodes:
            if not self.scene.server.is_real:
                self.scene.wait_event(f"waiting-{name}", "FailedScheduling")

    def assert_bound_after_return(self, name: str) -> None:
        """A pod that fits nowhere else was bound when the node was Ready again, and runs.

        No scheduler is beside the real control plane.
        """
        stories, waiting = self.scene.stories, f"waiting-{name}"
        if self.scene.server.is_real:
            return
        self.scene.wait_pod(waiting, "Running Ready=True")
        _, bound = stories.became("pods", waiting, lambda it: bool(it["spec"].get("nodeName")))
        _, ready = stories.became("nodes", name, is_ready)
        assert bound > ready

    def _create(self, name: str, **spec: Any) -> None:
        client, namespace = self.scene.server.client, self.scene.namespace
        created(client, pods(namespace), command_pod(name, "sleep", "1000", **spec))


@pytest.fixture
def agents(each_server: Server, tmp_path: Path) -> Iterator[Agents]:
    with Scene.on(each_server.kind, tmp_path, POLICY) as scene, Agents.on(scene) as agents:
        for name in OTHERS:
            scene.kubelets.register(name)
        agents.wait_ready()
        agents.run_pods()
        yield agents


def is_ready(found: Document) -> bool:
    return condition(found, "Ready").get("status") == "True"


def is_unknown(found: Document) -> bool:
    return condition(found, "Ready").get("status") == "Unknown"


def kill_everything(node: ProcessNode) -> None:
    """As a loss of power: the agent, shims, monitors and containers."""
    node.kill()
    shims = [shim.process.pid for shim in node.shims()]
    doomed = [psutil.Process(pid) for pid in shims if psutil.pid_exists(pid)]
    doomed += [child for it in doomed for child in it.children(recursive=True)]
    for process in doomed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(doomed, SECONDS)


def test_agents_that_fall_silent_and_return(agents: Agents) -> None:
    scene, stories, nodes = agents.scene, agents.scene.stories, agents.nodes
    hanging = nodes[STOPPED].process
    assert hanging is not None
    nodes[KILLED].kill()
    hanging.send_signal(signal.SIGSTOP)
    kill_everything(nodes[POWERLESS])
    silent = time.monotonic()
    for name in nodes:
        scene.wait_taints(name, "unreachable")
        took = stories.became("nodes", name, is_unknown)[0] - silent
        # One period more than promised, for the machine that has other things to do.
        limit = POLICY.node_monitor_grace_period + 2 * POLICY.node_monitor_period
        assert LEASE_SECONDS / 2 < took < limit
        scene.wait_pod(f"evicted-{name}", "terminating")
        scene.wait_pod(f"stays-{name}", "Ready=False")
    agents.create_waiting()

    returned = time.monotonic()
    for name in (KILLED, POWERLESS):
        nodes[name].start()
    hanging.send_signal(signal.SIGCONT)
    for name in nodes:
        stories.wait_newest("nodes", name, is_ready)
        assert stories.became("nodes", name, is_ready)[0] - returned < RETURN_SECONDS
        scene.wait_taints(name)
        scene.wait_no_schedule(name)
        scene.wait_pod(f"evicted-{name}", "gone")
        stories.wait_newest("pods", f"stays-{name}", is_ready)
        agents.assert_bound_after_return(name)

    started = ["Pending", "Pending Ready=False/ContainersNotReady", "Running Ready=True/"]
    target = "Running Ready=False/ DeletionByTaintManager"
    for name in nodes:
        assert stories.taints(name, "NoExecute") == ["", "unreachable", ""]
        assert readiness(stories.all("nodes", name))[-3:] == ["True", "Unknown", "True"]
        story = [*started, "Running Ready=False/", target, f"{target} terminating"]
        assert stories.pod(f"evicted-{name}")[: len(story)] == story
    for name in (KILLED, STOPPED):
        # Its containers ran all the time.
        stayed = f"stays-{name}"
        assert stories.pod(stayed) == [*started, "Running Ready=False/", "Running Ready=True/"]
        assert container(stories.newest("pods", stayed))["restartCount"] == 0
    assert container(stories.newest("pods", f"stays-{POWERLESS}"))["restartCount"] == 1


def readiness(states: list[Document]) -> list[str]:
    """The statuses of Ready, one after another."""
    found = [condition(it, "Ready").get("status", "") for it in states]
    return [status for status, _ in groupby(found)]
