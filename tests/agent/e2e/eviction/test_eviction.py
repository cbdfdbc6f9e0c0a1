"""Pods of real processes are evicted, in the kubelet's words, and only once."""

import itertools
import sys
import uuid
from pathlib import Path

import pytest

from tests.agent.e2e.eviction import die_in_eviction
from tests.agent.e2e.faults.small_disk import small_disk
from tests.support.processes.agent_process import (
    Cluster,
    Document,
    condition,
    container,
    has_phase,
    is_ready,
    until,
)
from tests.support.processes.api_servers import EmbeddedServer
from tests.support.processes.mortal_node import MortalNode, events_about, mortal_node, pod_of
from tests.support.processes.programs import COMMAND

__all__ = ["small_disk"]

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

NODE = "node-e"
DISK_TAINT = "node.kubernetes.io/disk-pressure"
MEMORY_TAINT = "node.kubernetes.io/memory-pressure"
ALWAYS_UNDER_PRESSURE = ("--eviction-hard", "memory.available<99.9%")
"""Some memory is always in use. Pods with a memory request are admitted nevertheless."""
_NEVER = 1_000_000
"""More steps than an eviction has."""


def is_evicted(pod: Document) -> bool:
    return has_phase("Failed")(pod) and pod["status"].get("reason") == "Evicted"


def writing(name: str, kilobytes: int) -> Document:
    """A pod that writes this much to its log and then sleeps."""
    script = f"head -c {kilobytes}k /dev/zero | tr '\\0' x | fold -w 99; echo done; exec sleep 1000"
    return pod_of(name, "sh", "-c", script, node=NODE)


def holding(name: str, megabytes: int, *, request: str) -> Document:
    """A pod that keeps this much memory in use."""
    program = f"import time; data = b'x' * {megabytes} * 2**20; time.sleep(1000)"
    pod = pod_of(name, sys.executable, "-c", program, node=NODE)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": request}}
    return pod


def taints(cluster: Cluster) -> list[str]:
    return [taint["key"] for taint in (cluster.node() or {})["spec"].get("taints") or ()]


def has_pressure(cluster: Cluster, kind: str) -> bool:
    return bool(condition(cluster.node() or {}, kind)["status"] == "True")


def has_disk_pressure(cluster: Cluster) -> bool:
    return has_pressure(cluster, "DiskPressure")


def test_the_pod_that_fills_the_disk_goes_and_the_disk_is_free_again(small_disk: Path) -> None:
    size = ("--container-log-max-size", "1Gi")
    period = ("--eviction-pressure-transition-period", "10s")
    options = ("--eviction-hard", "nodefs.available<40%", "--no-history", *size, *period)
    with mortal_node(small_disk, "none", *options, node=NODE) as node:
        node.log_file = small_disk.parent / "agent.log"
        cluster = node.start_ready()
        cluster.create(writing("modest", 500))
        cluster.wait_ready("modest")
        cluster.create(writing("greedy", 7000))
        greedy = cluster.wait_for("greedy", is_evicted)
        assert greedy["status"]["message"].startswith(
            "The node was low on resource: ephemeral-storage. Threshold quantity: 6710886, "
        )
        assert "Container app was using" in greedy["status"]["message"]
        target = condition(greedy, "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
        event = cluster.wait_for_event("Evicted", "greedy", "low on resource: ephemeral-storage")
        assert event["metadata"]["annotations"]["starved_resource"] == "ephemeral-storage"
        cluster.wait_for_event("EvictionThresholdMet", NODE, "reclaim ephemeral-storage")
        cluster.wait_for_event("NodeHasDiskPressure", NODE)
        # Its log is removed, so that no other pod has to go.
        until(lambda: not node.pod_folder(greedy).path.exists(), node.log)
        until(lambda: not has_disk_pressure(cluster) and DISK_TAINT not in taints(cluster))
        assert is_ready(cluster.pod("modest") or {})
        assert events_about(cluster, greedy)["Evicted"] == 1


def test_the_pod_that_uses_more_memory_than_it_requested_goes(tmp_path: Path) -> None:
    capacity = ("--node-capacity", "memory=400Mi")
    period = ("--eviction-pressure-transition-period", "10s")
    options = ("--eviction-hard", "memory.available<100Mi", *capacity, *period)
    with mortal_node(tmp_path, "none", *options, node=NODE) as node:
        cluster = node.start_ready()
        # It uses more than the other one, but not more than it requested.
        cluster.create(holding("honest", 170, request="200Mi"))
        cluster.wait_ready("honest")
        cluster.create(holding("greedy", 150, request="10Mi"))
        until(lambda: has_pressure(cluster, "MemoryPressure"), node.log)
        greedy = cluster.wait_for("greedy", is_evicted)
        message = greedy["status"]["message"]
        assert message.startswith(
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: "
        )
        assert "Container app was using " in message
        assert message.endswith(", request is 10Mi, has larger consumption of memory. ")
        assert container(greedy)["state"]["terminated"]["exitCode"] in (137, 143)
        cluster.wait_for_event("NodeHasInsufficientMemory", NODE)
        cluster.wait_for_event("NodeHasSufficientMemory", NODE)
        until(lambda: not has_pressure(cluster, "MemoryPressure"))
        until(lambda: MEMORY_TAINT not in taints(cluster))
        assert is_ready(cluster.pod("honest") or {})
        assert events_about(cluster, greedy)["Evicted"] == 1


def test_a_node_under_disk_pressure_has_the_taint_and_rejects_pods(small_disk: Path) -> None:
    options = ("--eviction-hard", "nodefs.available<99%", "--no-history")
    with mortal_node(small_disk, "none", *options, node=NODE) as node:
        node.log_file = small_disk.parent / "agent.log"
        cluster = node.start_ready()
        until(lambda: has_disk_pressure(cluster) and DISK_TAINT in taints(cluster), node.log)
        cluster.create(pod_of("late", "sleep", "1000", node=NODE))
        late = cluster.wait_for("late", is_evicted)
        assert late["status"]["message"] == (
            "Pod was rejected: The node had condition: [DiskPressure]. "
        )


def test_a_pod_with_a_volume_above_its_size_limit_is_evicted(
    embedded_server: EmbeddedServer, tmp_path: Path
) -> None:
    folder = f"/tmp/podstatus-test-{uuid.uuid4()}"  # noqa: S108 - where volumes are allowed
    cluster = Cluster(embedded_server.access, NODE, embedded_server.new_namespace())
    with mortal_node(tmp_path, "none", server=embedded_server, node=NODE) as node:
        node.start()
        node.wait_ready(cluster)
        script = f"head -c 3000k /dev/zero > {folder}/file; exec sleep 1000"
        pod = pod_of("p", "sh", "-c", script, node=NODE)
        pod["spec"]["volumes"] = [{"name": "data", "emptyDir": {"sizeLimit": "2Mi"}}]
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": folder}]
        cluster.create(pod)
        evicted = cluster.wait_for("p", is_evicted)
        assert evicted["status"]["message"] == (
            'Usage of EmptyDir volume "data" exceeds the limit "2Mi". '
        )
        conditions = [it["type"] for it in evicted["status"]["conditions"]]
        assert "DisruptionTarget" not in conditions
        cluster.wait_for_event("Evicted", "p", "exceeds the limit")
        evictions = [it for it in node.ask_text("/metrics").splitlines() if "_evictions{" in it]
        assert evictions == ['kubelet_evictions{eviction_signal="emptydirfs.limit"} 1.0']
        cluster.delete("p")
        cluster.wait_gone("p")
        until(lambda: not Path(folder).exists(), node.log)


def test_a_pod_above_its_ephemeral_storage_limit_is_evicted(
    embedded_server: EmbeddedServer, tmp_path: Path
) -> None:
    cluster = Cluster(embedded_server.access, NODE, embedded_server.new_namespace())
    with mortal_node(tmp_path, "none", server=embedded_server, node=NODE) as node:
        node.start()
        node.wait_ready(cluster)
        pod = writing("p", 3000)
        pod["spec"]["containers"][0]["resources"] = {"limits": {"ephemeral-storage": "1Mi"}}
        cluster.create(pod)
        evicted = cluster.wait_for("p", is_evicted)
        assert evicted["status"]["message"] == (
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
        )


class KilledScene:
    """A node that is always under memory pressure, and an agent that is killed in an eviction."""

    def __init__(self, node: MortalNode, cluster: Cluster) -> None:
        self.node, self.cluster = node, cluster
        self._words = node.words[len(COMMAND) :]

    def start(self, steps: int) -> None:
        """Start an agent that dies before this step of an eviction."""
        self.node.words = [sys.executable, "-m", die_in_eviction.__name__, str(steps), *self._words]
        self.node.start()
        self.node.wait_serving()

    def dies_or_evicts(self, name: str) -> bool:
        """Whether the agent dies in the eviction of a new pod."""
        process = self.node.process
        assert process is not None
        pod = pod_of(name, "sleep", "1000", node=NODE)
        pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi"}}
        self.cluster.create(pod)
        until(lambda: process.poll() is not None or self.is_done(name), self.node.log)
        return process.poll() is not None

    def is_done(self, name: str) -> bool:
        """Whether the server has the end of the eviction, and the agent knows it."""
        pod = self.cluster.pod(name)
        return pod is not None and is_evicted(pod) and not any(self._files("evictions"))

    def check_evicted_once(self, name: str) -> None:
        until(lambda: self.is_done(name), self.node.log)
        evicted = self.cluster.wait_for(name, is_evicted)
        assert evicted["status"]["message"].startswith("The node was low on resource: memory. ")
        assert container(evicted)["restartCount"] == 0
        assert "terminated" in container(evicted)["state"]
        events = events_about(self.cluster, evicted)
        assert events["Evicted"] <= 1
        assert events["Started"] <= 1

    def remove(self, name: str) -> None:
        """Delete the pod; nothing of it is left."""
        self.cluster.delete(name)
        self.cluster.wait_gone(name)
        until(lambda: not self._left(), self._left)
        self.node.kill()

    def _left(self) -> list[Path]:
        places = ("evictions", "outbox", "runtime/pods", "runtime/removed")
        return [path for place in places for path in self._files(place)]

    def _files(self, place: str) -> list[Path]:
        return list(self.node.root_dir.glob(f"{place}/*"))


def test_an_agent_that_is_killed_at_any_step_of_an_eviction_completes_it(
    embedded_server: EmbeddedServer, tmp_path: Path
) -> None:
    cluster = Cluster(embedded_server.access, NODE, embedded_server.new_namespace())
    options = ALWAYS_UNDER_PRESSURE
    with mortal_node(tmp_path, "none", *options, server=embedded_server, node=NODE) as node:
        scene = KilledScene(node, cluster)
        for steps in itertools.count():
            name = f"p-{steps}"
            scene.start(steps)
            was_killed = scene.dies_or_evicts(name)
            # Its countdown goes on: one that survived the eviction could die of the deletion.
            node.kill()
            scene.start(_NEVER)
            scene.check_evicted_once(name)
            scene.remove(name)
            if not was_killed:
                break
    assert steps > 5
