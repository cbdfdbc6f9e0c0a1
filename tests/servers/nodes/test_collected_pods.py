"""Pods that no node will terminate have the same stories on both control planes."""

from pathlib import Path

import pytest

from tests.servers.nodes.scene import Scene
from tests.support.processes.agent_process import condition
from tests.support.processes.api_servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_pods_without_a_node_are_collected(each_server: Server, tmp_path: Path) -> None:
    with Scene.on(each_server.kind, tmp_path) as scene:
        client, namespace = scene.server.client, scene.namespace
        for node in ("ready", "removed", "broken"):
            scene.kubelets.register(node)
            scene.wait_no_schedule(node)
            scene.wait_event(node, "RegisteredNode")
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        for name, node in (("orphan", "removed"), ("stuck", "broken"), ("fine", "ready")):
            scene.run_pod(name, node, tolerations=[{"operator": "Exists"}])
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            assert client.patch(path, held)[0] == 200
        client.delete(f"/api/v1/namespaces/{namespace}/pods/stuck")
        scene.kubelets.die("removed", "broken")
        assert client.delete("/api/v1/nodes/removed")[0] == 200
        scene.wait_taints("broken", "unreachable")
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        code, answer = client.patch("/api/v1/nodes/broken", {"spec": {"taints": [taint]}})
        assert code == 200, answer
        scene.wait_pod("stuck", "Failed")
        scene.wait_pod("orphan", "terminating")
        assert scene.stories.pod("fine") == ["Pending", "Running Ready=True/"]
        assert scene.stories.pod("stuck") == [
            "Pending",
            "Running Ready=True/",
            "Running Ready=True/ terminating",
            "Running Ready=False/ terminating",
            "Failed Ready=False/ terminating",
        ]
        assert scene.stories.newest("pods", "stuck")["metadata"]["deletionGracePeriodSeconds"] == 0
        assert scene.stories.pod("orphan") == [
            "Pending",
            "Running Ready=True/",
            "Failed Ready=True/ DeletionByPodGC",
            "Failed Ready=True/ DeletionByPodGC terminating",
        ]
        found = condition(scene.stories.newest("pods", "orphan"), "DisruptionTarget")
        assert found["message"] == "PodGC: node no longer exists"
        scene.wait_event("removed", "Node removed event: Removing Node removed from Controller")
