"""Pods without a node get one, seen through a real socket."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podstatus.testing.apiserver import ApiServerThread, running_api_server
from tests.apiserver.test_scheduling import node, pod

Document = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path / "server", schedule=True) as server:
        yield server


def create_node(server: ApiServerThread, document: Document) -> None:
    document = {"apiVersion": "v1", "kind": "Node"} | document
    assert server.request("POST", "/api/v1/nodes", document)[0] == 201


def create_pod(server: ApiServerThread, name: str, document: Document | None = None) -> None:
    document = (document or pod()) | {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    code, answered = server.request("POST", PODS, document)
    assert code == 201, answered


def wait_for(server: ApiServerThread, name: str, is_so: Callable[[Document], bool]) -> Document:
    """The pod, once it is so; by a watch, so nobody polls."""
    with closing(server.connect()) as connection:
        path = f"{PODS}?watch=1&fieldSelector=metadata.name={name}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
        response = connection.getresponse()
        while True:
            found: Document = json.loads(response.readline())["object"]
            if is_so(found):
                return found


def node_of(document: Document) -> str:
    name: str = document["spec"].get("nodeName", "")
    return name


def scheduled(document: Document) -> Document:
    conditions = document["status"].get("conditions") or []
    found: Document = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    return found


def test_a_pod_is_bound_to_a_ready_node(server: ApiServerThread) -> None:
    create_node(server, node())
    create_pod(server, "web")
    bound = wait_for(server, "web", lambda found: node_of(found) == "n1")
    assert scheduled(bound)["status"] == "True"


def test_a_pod_that_came_first_is_bound_when_a_node_becomes_ready(server: ApiServerThread) -> None:
    create_node(server, node(ready="False"))
    create_pod(server, "web")
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    server.request("PATCH", "/api/v1/nodes/n1/status", status, MERGE)
    wait_for(server, "web", lambda found: node_of(found) == "n1")


def test_without_a_ready_node_nothing_is_written(server: ApiServerThread) -> None:
    create_node(server, node("n0", ready="False"))
    create_pod(server, "early")
    before = server.stored("pods", "early", "default")
    create_pod(server, "other", pod(nodeName="n0"))
    assert server.stored("pods", "early", "default") == before
    assert before is not None
    assert scheduled(before) == {}


def test_a_full_node_takes_the_next_pod_when_one_has_gone(server: ApiServerThread) -> None:
    create_node(server, node())
    for name in ("a", "b"):
        create_pod(server, name)
        wait_for(server, name, lambda found: node_of(found) == "n1")
    create_pod(server, "c")
    told = wait_for(server, "c", lambda found: bool(scheduled(found)))
    assert scheduled(told) | {"lastTransitionTime": ""} == {
        "type": "PodScheduled",
        "observedGeneration": 1,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": "",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Too many pods.",
    }
    server.request("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    bound = wait_for(server, "c", lambda found: node_of(found) == "n1")
    assert scheduled(bound)["status"] == "True"


def test_a_pod_that_has_ended_makes_room(server: ApiServerThread) -> None:
    create_node(server, node())
    create_pod(server, "a", pod({"cpu": "2"}))
    wait_for(server, "a", lambda found: node_of(found) == "n1")
    create_pod(server, "b", pod({"cpu": "2"}))
    server.request("PATCH", f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}, MERGE)
    wait_for(server, "b", lambda found: node_of(found) == "n1")


@pytest.mark.parametrize(
    "spec", [{"schedulerName": "mine"}, {"schedulingGates": [{"name": "example.com/later"}]}]
)
def test_pods_of_others_are_left_alone(server: ApiServerThread, spec: Document) -> None:
    create_node(server, node())
    create_pod(server, "theirs", pod(**spec))
    create_pod(server, "large", pod({"cpu": "9"}, **spec))
    create_pod(server, "ours")
    wait_for(server, "ours", lambda found: node_of(found) == "n1")
    for name in ("theirs", "large"):
        theirs = server.stored("pods", name, "default")
        assert theirs is not None
        assert node_of(theirs) == ""
        assert scheduled(theirs).get("reason") != "Unschedulable"


def test_pods_that_wait_are_bound_after_a_restart(tmp_path: Path) -> None:
    with running_api_server(tmp_path, durable=True) as server:
        create_node(server, node())
        create_pod(server, "taken", pod({"cpu": "2"}, nodeName="n1"))
        create_pod(server, "large", pod({"cpu": "1"}))
        create_pod(server, "small")
    with running_api_server(tmp_path, durable=True, schedule=True) as server:
        wait_for(server, "small", lambda found: node_of(found) == "n1")
        large = wait_for(server, "large", lambda found: bool(scheduled(found)))
        assert scheduled(large)["reason"] == "Unschedulable"
