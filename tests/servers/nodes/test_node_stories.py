"""Silent nodes and their pods have the same stories on both control planes.

Those of the real one are of kube-controller-manager v1.36.4; all are written down here.
"""

from pathlib import Path

import pytest

from tests.servers.nodes.scene import BOTH, Scene, tolerating
from tests.support.processes.agent_process import condition
from tests.support.processes.api_servers import Document, Server

REPORTED = "Ready={}/KubeletReady MemoryPressure=False/KubeletMemoryPressure \
DiskPressure=False/KubeletDiskPressure PIDPressure=False/KubeletPIDPressure"
READY, NOT_READY = REPORTED.format("True"), REPORTED.format("False")
UNKNOWN = " ".join(
    f"{kind}=Unknown/NodeStatusUnknown"
    for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
)
NEVER = UNKNOWN.replace("NodeStatusUnknown", "NodeStatusNeverUpdated")

pytestmark = pytest.mark.timeout(300)


def test_a_silent_node_is_unknown_and_tainted_and_its_pods_are_evicted_in_time(
    each_server: Server, tmp_path: Path
) -> None:
    with Scene.on(each_server.kind, tmp_path) as scene:
        stories = scene.stories
        scene.kubelets.register("ready")
        scene.kubelets.register("dying")
        scene.kubelets.register("failing")
        scene.kubelets.register_mute("mute", zone="elsewhere")
        scene.wait_no_schedule("dying")
        scene.run_pod("default", "dying")
        scene.run_pod("forever", "dying", tolerations=tolerating(*BOTH, seconds=None))
        scene.run_pod("two-seconds", "dying", tolerations=tolerating(*BOTH, seconds=2))
        scene.run_pod("not-at-all", "dying", tolerations=tolerating(*BOTH, seconds=0))
        scene.run_pod("unready", "dying", ready="False")
        scene.run_pod("elsewhere", "ready")

        scene.kubelets.die("dying")
        # Meanwhile another one reports that it is not Ready, dies, and comes back as it was.
        scene.kubelets.report("failing", "False")
        scene.wait_taints("failing", "not-ready")
        scene.kubelets.die("failing")
        scene.wait_taints("failing", "unreachable")
        scene.kubelets.revive("failing", ready="False")
        scene.wait_taints("failing", "not-ready")
        scene.wait_pod("two-seconds", "terminating")
        scene.wait_pod("not-at-all", "terminating")
        scene.kubelets.report("failing", "True")
        scene.kubelets.revive("dying")
        for node in ("failing", "dying"):
            scene.wait_taints(node)
            scene.wait_no_schedule(node)
        for name in ("default", "forever"):
            scene.kubelets.report_pod(scene.namespace, name, "True")
            scene.wait_pod(name, "Ready=True")
        scene.wait_taints("mute", "unreachable")
        for name in ("default", "unready"):
            scene.wait_event(name, "Cancelling deletion")

        assert stories.conditions("dying") == [READY, UNKNOWN, READY]
        assert stories.taints("dying", "NoSchedule") == ["not-ready", "", "unreachable", ""]
        assert stories.taints("dying", "NoExecute") == ["", "unreachable", ""]
        not_ready = "NodeNotReady node-controller: Node dying status is now: NodeNotReady"
        registered = "Registered Node dying in Controller"
        registered = f"RegisteredNode node-controller: Node dying event: {registered}"
        assert stories.events("dying") == [
            f"Node dying: Normal {not_ready}",
            f"Node dying: Normal {registered}",
        ]
        assert_times_of_unknown(stories.all("nodes", "dying"))

        assert stories.conditions("failing") == [READY, NOT_READY, UNKNOWN, NOT_READY, READY]
        assert stories.taints("failing", "NoSchedule") == [
            *("not-ready", "", "not-ready", "unreachable", "not-ready", ""),
        ]
        assert stories.taints("failing", "NoExecute") == [
            *("", "not-ready", "unreachable", "not-ready", ""),
        ]
        assert [it.split(": ")[1] for it in stories.events("failing")] == [
            "Normal RegisteredNode node-controller",
        ]

        assert stories.conditions("mute") == ["", NEVER]
        assert stories.taints("mute", "NoExecute") == ["", "unreachable"]
        assert [it.split(": ")[1] for it in stories.events("mute")] == [
            "Normal RegisteredNode node-controller",
        ]

        running = ["Pending", "Running Ready=True/"]
        assert stories.pod("elsewhere") == running
        assert stories.events("elsewhere") == []
        assert stories.pod("unready") == ["Pending", "Running Ready=False/ContainersNotReady"]
        for name in ("default", "forever"):
            assert stories.pod(name) == [*running, "Running Ready=False/", "Running Ready=True/"]
        for name in ("two-seconds", "not-at-all"):
            target = "Running Ready=False/ DeletionByTaintManager"
            assert stories.pod(name) == [
                *(*running, "Running Ready=False/", target, f"{target} terminating"),
            ]
            assert stories.newest("pods", name)["metadata"]["deletionGracePeriodSeconds"] == 30
        not_ready = "Warning NodeNotReady node-controller: Node is not ready"
        evicts = "Normal TaintManagerEviction taint-eviction-controller:"
        where = f"Pod {scene.namespace}"
        assert stories.events("default", "forever", "two-seconds", "not-at-all", "unready") == [
            f"Pod default: {evicts} Cancelling deletion of {where}/default",
            f"Pod default: {not_ready}",
            f"Pod forever: {not_ready}",
            f"Pod not-at-all: {evicts} Marking for deletion {where}/not-at-all",
            f"Pod not-at-all: {not_ready}",
            f"Pod two-seconds: {evicts} Marking for deletion {where}/two-seconds",
            f"Pod two-seconds: {not_ready}",
            f"Pod unready: {evicts} Cancelling deletion of {where}/unready",
        ]
        assert_disruption(stories.newest("pods", "two-seconds"))


def assert_times_of_unknown(states: list[Document]) -> None:
    """The heartbeat stays: it tells when the node reported last. The transition is new."""
    last = next(it for it in reversed(states) if condition(it, "Ready")["status"] == "Unknown")
    first = states[0]
    for kind in ("Ready", "PIDPressure"):
        before, after = condition(first, kind), condition(last, kind)
        assert after["lastHeartbeatTime"] == before["lastHeartbeatTime"]
        assert after["lastTransitionTime"] > before["lastTransitionTime"]
        assert after["message"] == "Kubelet stopped posting node status."


def assert_disruption(pod: Document) -> None:
    found = condition(pod, "DisruptionTarget")
    assert found["status"] == "True"
    assert found["message"] == "Taint manager: deleting due to NoExecute taint"
    # A deletion makes a new generation.
    assert found["observedGeneration"] == pod["metadata"]["generation"] - 1
    assert found["lastTransitionTime"]


def test_no_pod_is_evicted_while_no_node_is_ready(each_server: Server, tmp_path: Path) -> None:
    with Scene.on(each_server.kind, tmp_path) as scene:
        for node in ("first", "last"):
            scene.kubelets.register(node)
            scene.wait_no_schedule(node)
        scene.run_pod("tolerant", "first", tolerations=tolerating(*BOTH, seconds=60))
        scene.kubelets.die("first")
        scene.wait_taints("first", "unreachable")
        scene.kubelets.die("last")
        # The fault may be on the side of the control plane: the eviction is cancelled.
        scene.wait_taints("first")
        scene.wait_no_schedule("last", "unreachable")
        scene.kubelets.revive("first")
        scene.wait_taints("last", "unreachable")
        scene.kubelets.revive("last")
        scene.wait_taints("last")
        for node in ("first", "last"):
            assert scene.stories.conditions(node) == [READY, UNKNOWN, READY]
            assert scene.stories.taints(node, "NoExecute") == ["", "unreachable", ""]
        assert scene.stories.pod("tolerant") == [
            *("Pending", "Running Ready=True/", "Running Ready=False/"),
        ]
        scene.wait_event("tolerant", "Cancelling deletion of Pod")
