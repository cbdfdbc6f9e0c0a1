"""The Node's declared features suffice for every kind of resize."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes.agent_process import Document, agent_on, make_pod
from tests.support.processes.api_servers import NODES, Server

pytestmark = pytest.mark.slow

NODE = NODES[21]
BEFORE = {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "400m"}}


def test_a_pod_as_a_whole_and_init_containers_are_resized(
    each_server: Server, tmp_path: Path
) -> None:
    def resize(name: str, change: Document) -> None:
        path = f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/resize"
        code, answer = each_server.client.patch(path, {"spec": change})
        assert code == 200, answer

    with agent_on(each_server, tmp_path, NODE) as (_, cluster):
        first = {"name": "first", "image": "a", "resources": {"requests": {"cpu": "100m"}}}
        cluster.create(
            make_pod("whole", "", NODE, resources=BEFORE),
            make_pod("init", "run=1h", NODE, initContainers=[first]),
        )
        cluster.wait_ready("whole")
        cluster.wait_for("init", lambda pod: pod["status"].get("initContainerStatuses"))
        resize("whole", {"resources": {"requests": {"cpu": "300m"}, "limits": {"cpu": "600m"}}})
        resize("init", {"initContainers": [{**first, "resources": {"requests": {"cpu": "150m"}}}]})
        cluster.wait_for("whole", _has_as_a_whole("300m", "600m"))
        cluster.wait_for("init", _has_first("150m"))


def _has_as_a_whole(request: str, limit: str) -> Callable[[Document], bool]:
    def look(pod: Document) -> bool:
        has = pod["status"].get("resources") or {}
        resources = (has.get("requests") or {}).get("cpu"), (has.get("limits") or {}).get("cpu")
        return resources == (request, limit) and not _is_resizing(pod)

    return look


def _has_first(request: str) -> Callable[[Document], bool]:
    def look(pod: Document) -> bool:
        (first,) = pod["status"]["initContainerStatuses"]
        has = (first.get("resources") or {}).get("requests") or {}
        return has.get("cpu") == request and not _is_resizing(pod)

    return look


def _is_resizing(pod: Document) -> bool:
    return any(c["type"].startswith("PodResize") for c in pod["status"]["conditions"])
