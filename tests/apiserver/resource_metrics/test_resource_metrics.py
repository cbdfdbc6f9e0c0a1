"""`metrics.k8s.io` of the embedded server, with a node that reports what a test wrote down."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.kubelet import stats_reader
from podstatus.apiserver.resource_metrics import node_stats_cache
from podstatus.apiserver.resource_metrics.handlers import ResourceMetricsHandlers
from podstatus.apiserver.resource_metrics.node_stats_cache import NodeStatsCache
from podstatus.apiserver.resources import NODE_METRICS
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.apiserver.strategies.by_resource import selectable_fields
from podstatus.testing.apiserver import running_api_server
from podstatus.testing.clock import FakeClock
from tests.servers.pods import IMAGE, created, pods
from tests.servers.streams.node_scene import NodeScene
from tests.support.processes.api_servers import MERGE, EmbeddedServer
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL, Kubectl
from tests.support.processes.stand_in_node import make_node_certificates, running_node

ROOT = "/apis/metrics.k8s.io/v1beta1"
AT = "2024-01-31T09:30:00Z"


def used(millicores: int, mebibytes: int) -> dict[str, Any]:
    return {
        "cpu": {"time": AT, "usageNanoCores": millicores * 1_000_000},
        "memory": {"time": AT, "workingSetBytes": mebibytes << 20},
    }


class MeteredScene(NodeScene):
    """A node whose pods have stats."""

    def measure(self, pod: str, *, uid: str = "", **containers: dict[str, Any]) -> None:
        """Let the node report these containers of a pod."""
        found = self.server.client.get(pods(self.namespace, pod))[1]
        summary = self.node.summary or {"node": {"nodeName": self.name, **used(1500, 2048)}}
        reference = {"name": pod, "namespace": self.namespace}
        reference["uid"] = uid or found["metadata"]["uid"]
        stats = {
            "podRef": reference,
            "containers": [{"name": name, **it} for name, it in containers.items()],
        }
        self.node.summary = {**summary, "pods": [*summary.get("pods", ()), stats]}

    def label(self, pod: str, **labels: str) -> None:
        body = {"metadata": {"labels": labels}}
        assert self.server.client.patch(pods(self.namespace, pod), body, MERGE)[0] == 200

    def path(self, name: str = "") -> str:
        """The path of all PodMetrics of the namespace, or of one."""
        return f"{ROOT}/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")

    def names(self, query: str = "") -> list[str]:
        """The names of the PodMetrics of the namespace."""
        code, found = self.server.client.get(f"{self.path()}?{query}")
        assert code == 200, found
        return [item["metadata"]["name"] for item in found["items"]]


@pytest.fixture
def scene(embedded_server: EmbeddedServer, node_certificates: Path) -> Iterator[MeteredScene]:
    with running_node(node_certificates, embedded_server.access.authority) as thread:
        scene = MeteredScene(embedded_server, embedded_server.new_namespace(), thread)
        yield scene
        embedded_server.client.delete(f"/api/v1/nodes/{scene.name}")


def test_the_metrics_of_a_node(scene: MeteredScene) -> None:
    scene.node.summary = {"node": {"nodeName": scene.name, **used(1500, 2048)}}
    code, metrics = scene.server.client.get(f"{ROOT}/nodes/{scene.name}")
    assert code == 200
    assert metrics["metadata"].pop("creationTimestamp")
    assert metrics == {
        "kind": "NodeMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": scene.name},
        "timestamp": AT,
        "window": "10s",
        "usage": {"cpu": "1500m", "memory": "2Gi"},
    }
    listed = scene.server.client.get(f"{ROOT}/nodes?fieldSelector=metadata.name={scene.name}")[1]
    [item] = listed["items"]
    assert item["usage"] == metrics["usage"]
    assert "kind" not in item
    assert {**listed, "items": []} == {
        "kind": "NodeMetricsList",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [],
    }


def test_only_cpu_and_memory_are_asked_for_with_the_certificate_of_the_server(
    scene: MeteredScene,
) -> None:
    scene.server.client.get(f"{ROOT}/nodes/{scene.name}")
    [asked] = scene.node.asked
    assert asked.raw == "/stats/summary?only_cpu_and_memory=true"
    assert asked.user == "podstatus-apiserver"


def test_the_metrics_of_pods(scene: MeteredScene) -> None:
    for name in ("web", "db"):
        scene.add_pod(name)
    scene.label("web", app="web")
    scene.measure("web", main=used(20, 3), proxy=used(5, 1))
    scene.measure("db", main=used(700, 100))
    code, metrics = scene.server.client.get(scene.path("web"))
    assert code == 200
    assert metrics["metadata"].pop("creationTimestamp")
    assert metrics == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "web", "namespace": scene.namespace, "labels": {"app": "web"}},
        "timestamp": AT,
        "window": "10s",
        "containers": [
            {"name": "main", "usage": {"cpu": "20m", "memory": "3Mi"}},
            {"name": "proxy", "usage": {"cpu": "5m", "memory": "1Mi"}},
        ],
    }
    assert scene.names() == ["db", "web"]
    everywhere = scene.server.client.get(f"{ROOT}/pods")[1]["items"]
    ours = [it for it in everywhere if it["metadata"]["namespace"] == scene.namespace]
    assert len(ours) == 2


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("labelSelector=app=web", ["web"]),
        ("labelSelector=app!=web", ["db"]),
        ("fieldSelector=metadata.name=db", ["db"]),
        ("fieldSelector=metadata.namespace=elsewhere", []),
        ("limit=1", ["db", "web"]),
    ],
)
def test_pods_are_selected(scene: MeteredScene, query: str, names: list[str]) -> None:
    for name in ("web", "db"):
        scene.add_pod(name)
        scene.measure(name, main=used(1, 1))
    scene.label("web", app="web")
    assert scene.names(query) == names


def test_other_fields_cannot_be_selected(scene: MeteredScene) -> None:
    code, status = scene.server.client.get(f"{scene.path()}?fieldSelector=spec.nodeName=n")
    assert (code, status["message"]) == (
        400,
        '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"',
    )


def test_a_pod_is_found_although_another_node_is_silent(scene: MeteredScene) -> None:
    """Only the node of the pod is asked."""
    scene.add_pod("web")
    scene.measure("web", main=used(1, 1))
    other = scene.add_node(1)
    assert scene.names() == ["web"]
    assert len(scene.node.asked) == 1
    assert scene.server.client.get(f"{ROOT}/nodes/{other}")[0] == 404
    scene.server.client.delete(f"/api/v1/nodes/{other}")


def test_a_recreated_pod_does_not_have_the_usage_of_the_one_before(scene: MeteredScene) -> None:
    scene.add_pod("web")
    scene.measure("web", uid="of-the-one-before", main=used(1, 1))
    assert scene.names() == []


def test_a_mirror_pod_has_the_usage_of_its_static_pod(scene: MeteredScene) -> None:
    spec = {"nodeName": scene.name, "containers": [{"name": "main", "image": IMAGE}]}
    mirror = {"name": "web", "annotations": {"kubernetes.io/config.mirror": "hash"}}
    created(scene.server.client, pods(scene.namespace), {"metadata": mirror, "spec": spec})
    scene.measure("web", uid="of-the-static-pod", main=used(1, 1))
    assert scene.names() == ["web"]


def test_pods_that_use_nothing_are_not_listed(scene: MeteredScene) -> None:
    scene.add_pod("unbound", node="")
    scene.add_pod("lost", node="no-such-node")
    scene.add_pod("done")
    scene.measure("done", main=used(1, 1))
    ended = {"status": {"phase": "Succeeded"}}
    done = f"{pods(scene.namespace, 'done')}/status"
    assert scene.server.client.patch(done, ended, MERGE)[0] == 200
    assert scene.names() == []
    assert not scene.node.asked


class Handled:
    """The handlers on a store with these Nodes, which are Ready or not."""

    def __init__(self, **nodes: bool) -> None:
        self.asked: list[str] = []
        clock = FakeClock()
        store = Store.open(None, selectable_fields)
        for name, is_ready in nodes.items():
            conditions = [{"type": "Ready", "status": str(is_ready)}] if is_ready else []
            node = {"metadata": {"name": name}, "status": {"conditions": conditions}}
            store.put("nodes", StorageKey("", name), node)
        cache = NodeStatsCache(self._read, clock)
        self._handlers = ResourceMetricsHandlers(store, cache, lambda: None, clock)

    async def _read(self, node: dict[str, Any]) -> bytes:
        self.asked.append(node["metadata"]["name"])
        return b'{"node": {}}'

    async def get(self, accept: str = "") -> None:
        request = HttpRequest(method="GET", path="", query={}, accept=accept)
        await self._handlers.handle(request, ResourcePath(resource=NODE_METRICS))


async def test_nodes_that_are_ready_are_read_first() -> None:
    handled = Handled(a=False, b=True, c=False, d=True)
    await handled.get()
    assert handled.asked == ["b", "d", "a", "c"]


async def test_no_node_is_read_for_an_answer_that_the_client_does_not_accept() -> None:
    handled = Handled(a=True)
    with pytest.raises(StatusError, match="application/json"):
        await handled.get("application/yaml")
    assert handled.asked == []


def test_a_node_that_never_answers_is_missing(
    scene: MeteredScene, node_certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_stats_cache, "NODE_SECONDS", 0.2)
    scene.node.summary = {"node": used(1, 1)}
    with running_node(node_certificates, scene.server.access.authority) as thread:
        thread.node.silent = True
        silent = scene.add_node(thread.node.port)
        listed = scene.server.client.get(f"{ROOT}/nodes")[1]["items"]
        names = [item["metadata"]["name"] for item in listed]
        assert scene.name in names
        assert silent not in names
        assert len(thread.node.asked) == 1
    scene.server.client.delete(f"/api/v1/nodes/{silent}")


def test_what_a_node_refuses_is_not_read(scene: MeteredScene) -> None:
    scene.node.summary, scene.node.summary_code = {"node": used(1, 1)}, 403
    assert scene.server.client.get(f"{ROOT}/nodes/{scene.name}")[0] == 404
    scene.node.summary_code = 200
    assert scene.server.client.get(f"{ROOT}/nodes/{scene.name}")[0] == 200


def test_a_summary_is_read_up_to_a_limit(
    scene: MeteredScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.node.summary = {"node": used(1, 1)}
    with monkeypatch.context() as patched:
        patched.setattr(stats_reader, "MAX_SUMMARY_BYTES", 100)
        assert scene.server.client.get(f"{ROOT}/nodes/{scene.name}")[0] == 404
    assert scene.server.client.get(f"{ROOT}/nodes/{scene.name}")[0] == 200


class TestErrors:
    """As metrics-server answers."""

    def test_what_does_not_exist(self, scene: MeteredScene) -> None:
        get = scene.server.client.get
        assert get(f"{ROOT}/nodes/absent")[1]["message"] == 'nodes "absent" not found'
        assert get(scene.path("absent"))[1]["message"] == 'pods "absent" not found'
        assert get(f"{ROOT}/pods/absent")[0] == 404
        assert get(f"{ROOT}/namespaces/x/nodes")[0] == 404
        assert get(f"{ROOT}/leases")[0] == 404
        assert get("/apis/metrics.k8s.io/v1/nodes")[0] == 404

    def test_what_has_no_metrics(self, scene: MeteredScene) -> None:
        scene.add_pod("web")
        code, status = scene.server.client.get(scene.path("web"))
        name = f"{scene.namespace}/web"
        assert (code, status["reason"]) == (404, "NotFound")
        assert status["message"] == f'podmetrics.metrics.k8s.io "{name}" not found'
        assert status["details"] == {"name": name, "group": "metrics.k8s.io", "kind": "podmetrics"}
        status = scene.server.client.get(f"{ROOT}/nodes/{scene.name}")[1]
        assert status["message"] == f'nodemetrics.metrics.k8s.io "{scene.name}" not found'

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_nothing_can_be_written(self, scene: MeteredScene, method: str) -> None:
        for path in (scene.path(), scene.path("web")):
            code, status = scene.server.client.ask(method, path, {})
            assert (code, status["reason"]) == (405, "MethodNotAllowed")

    def test_nothing_can_be_watched(self, scene: MeteredScene) -> None:
        code, status = scene.server.client.get(f"{scene.path()}?watch=true")
        expected = 'watch is not supported on resources of kind "pods.metrics.k8s.io"'
        assert (code, status["message"]) == (405, expected)

    def test_without_an_authority_for_nodes_it_is_named(
        self, tmp_path: Path, node_certificates: Path
    ) -> None:
        with running_api_server(tmp_path / "apiserver") as running:
            server = EmbeddedServer(running)
            assert server.client.get(f"{ROOT}/nodes")[1]["items"] == []
            with running_node(node_certificates, server.access.authority) as thread:
                scene = NodeScene(server, server.new_namespace(), thread)
                code, status = server.client.get(f"{ROOT}/nodes/{scene.name}")
                assert code == 503
                assert "--node-certificate-authority FILE" in status["message"]
                assert not thread.node.asked
            server.close()

    def test_a_node_with_another_certificate_is_not_believed(
        self, scene: MeteredScene, node_certificates: Path, tmp_path: Path
    ) -> None:
        foreign = tmp_path / "foreign"
        make_node_certificates(foreign)
        with running_node(foreign, scene.server.access.authority) as thread:
            thread.node.summary = {"node": used(1, 1)}
            name = scene.add_node(thread.node.port)
            assert scene.server.client.get(f"{ROOT}/nodes/{name}")[0] == 404
            assert not thread.node.asked
        scene.server.client.delete(f"/api/v1/nodes/{name}")


@pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)
class TestKubectl:
    """What `kubectl top` and `kubectl get` print."""

    @pytest.fixture
    def kubectl(self, scene: MeteredScene, tmp_path: Path) -> Kubectl:
        for name in ("web", "db"):
            scene.add_pod(name)
        scene.measure("web", main=used(20, 3), proxy=used(5, 1))
        scene.measure("db", main=used(700, 100))
        return Kubectl(scene.server.access, tmp_path)

    @staticmethod
    def table(text: str) -> list[list[str]]:
        return [line.split() for line in text.splitlines()[1:]]

    def test_top_node(self, scene: MeteredScene, kubectl: Kubectl) -> None:
        capacity = {"status": {"capacity": {"cpu": "2", "memory": "4Gi"}}}
        path = f"/api/v1/nodes/{scene.name}/status"
        assert scene.server.client.patch(path, capacity, MERGE)[0] == 200
        top = kubectl("top", "node", scene.name, "--show-capacity")
        assert self.table(top) == [[scene.name, "1500m", "75%", "2048Mi", "50%"]]

    def test_top_pod(self, scene: MeteredScene, kubectl: Kubectl) -> None:
        web, db = ["web", "25m", "4Mi"], ["db", "700m", "100Mi"]
        own = ("-n", scene.namespace)
        assert self.table(kubectl("top", "pod", *own)) == [db, web]
        assert self.table(kubectl("top", "pod", *own, "--sort-by=cpu")) == [db, web]
        assert self.table(kubectl("top", "pod", "web", *own)) == [web]
        assert self.table(kubectl("top", "pod", *own, "--containers")) == [
            ["db", "main", "700m", "100Mi"],
            ["web", "main", "20m", "3Mi"],
            ["web", "proxy", "5m", "1Mi"],
        ]
        everywhere = self.table(kubectl("top", "pod", "-A"))
        assert [scene.namespace, *web] in everywhere

    def test_get(self, scene: MeteredScene, kubectl: Kubectl) -> None:
        nodes = self.table(kubectl("get", "nodes.metrics.k8s.io", scene.name))
        assert nodes == [[scene.name, "1500m", "2Gi", "10s"]]
        metrics = kubectl("get", "pods.metrics.k8s.io", "-n", scene.namespace)
        assert self.table(metrics) == [["db", "700m", "100Mi", "10s"], ["web", "25m", "4Mi", "10s"]]
        assert "web" in kubectl("get", "pods", "-n", scene.namespace)
