"""The agent is killed repeatedly while pods come and go: every pod terminates correctly."""

import itertools
import os
import random
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes.agent_process import Cluster, Document, container, has_phase, until
from tests.support.processes.api_servers import EmbeddedServer
from tests.support.processes.mortal_node import (
    ISOLATIONS,
    MortalNode,
    commands,
    mortal_node,
    pod_of,
)

pytestmark = pytest.mark.slow

PODS, KILLS, SEED = 30, 6, 8
_numbers = itertools.count()


class Chaos:
    """Running pods, finished pods, and which of them are deleted."""

    def __init__(self, node: MortalNode, cluster: Cluster) -> None:
        self._node, self._cluster = node, cluster
        self._random = random.Random(SEED)
        self.running: dict[str, str] = {}
        """How long each of them sleeps: so it is found."""
        self.ending: list[str] = []
        self.deleted: list[str] = []

    def create(self, number: int) -> None:
        if number % 3 == 0:
            name, command = f"ends-{number}", ("sh", "-c", "echo begin; sleep 0.3; exit 3")
            self._create(pod_of(name, *command, node=self._node.node, restartPolicy="Never"))
            self.ending.append(name)
        else:
            name, seconds = f"runs-{number}", f"1000.{os.getpid()}{next(_numbers):04}"
            self._create(pod_of(name, "sleep", seconds, node=self._node.node))
            self.running[name] = seconds

    def _create(self, pod: Document) -> None:
        pod["spec"]["terminationGracePeriodSeconds"] = 1
        self._cluster.create(pod)

    def delete_one(self) -> None:
        name = self._random.choice([*self.running, *self.ending])
        self.running.pop(name, None)
        self.ending = [other for other in self.ending if other != name]
        self._cluster.delete(name)
        self.deleted.append(name)

    def kill_agent_at_any_moment(self) -> None:
        self._node.wait_serving()
        time.sleep(self._random.uniform(0.0, 0.8))  # any moment is as good as another
        self._node.kill()

    def check(self) -> None:
        """That all pods are as they should be, and nothing else is there."""
        for name in self.deleted:
            self._cluster.wait_gone(name)
        pods = self._cluster.wait_ready(*self.running)
        for name, seconds in self.running.items():
            # A sandbox is built before its command is there.
            (_,) = until(partial(commands, "sleep", seconds), partial(str, name))
        for name in self.ending:
            pod = self._cluster.wait_for(name, has_phase("Failed"))
            assert container(pod)["state"]["terminated"]["exitCode"] == 3
            assert container(pod)["restartCount"] == 0
            # An agent that has just started may not know the pod yet.
            assert until(partial(self._node.container_logs, pod)) == "begin\n"
            pods.append(pod)
        left = {pod["metadata"]["uid"] for pod in pods}
        until(lambda: self.folders() == left, lambda: self.folders() ^ left)
        until(lambda: len(self._node.shims()) == len(self.running), self._node.shims)

    def folders(self) -> set[str]:
        return {path.name for path in (self._node.runtime_dir / "pods").iterdir()}

    def delete_all(self) -> None:
        for name in (*self.running, *self.ending):
            self._cluster.delete(name)
        for name in (*self.running, *self.ending):
            self._cluster.wait_gone(name)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_pods_come_to_the_right_end_whenever_the_agent_is_killed(
    embedded_server: EmbeddedServer, tmp_path: Path, isolation: str
) -> None:
    name = f"chaos-{isolation}"
    cluster = Cluster(embedded_server.access, name, embedded_server.new_namespace())
    with mortal_node(tmp_path, isolation, server=embedded_server, node=name) as node:
        chaos = Chaos(node, cluster)
        for batch in batches():
            node.start()
            for number in batch:
                chaos.create(number)
            for _ in batch[::2]:
                chaos.delete_one()
            chaos.kill_agent_at_any_moment()
        node.start()
        node.wait_ready(cluster)
        chaos.check()
        chaos.delete_all()
        until(lambda: not list((node.runtime_dir / "pods").iterdir()))
        until(lambda: not node.shims())
        assert not any(commands("sleep", seconds) for seconds in chaos.running.values())
        assert "Traceback" not in node.log()


def batches() -> list[list[int]]:
    each = PODS // KILLS
    return [list(range(first, first + each)) for first in range(0, PODS, each)]
