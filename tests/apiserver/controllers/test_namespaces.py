"""A terminating namespace is removed with its objects."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerThread, running_api_server

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerThread]:
    """A server in memory."""
    with running_api_server(tmp_path) as running:
        yield running


def create_namespace(server: ApiServerThread, name: str) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert server.request("POST", NAMESPACES, namespace)[0] == 201


def create_pod(server: ApiServerThread, namespace: str, node: str = "") -> None:
    spec = {"containers": [{"name": "app", "image": "app:1"}]} | (
        {"nodeName": node} if node else {}
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    assert server.request("POST", f"{NAMESPACES}/{namespace}/pods", pod)[0] == 201


def wait_until_gone(server: ApiServerThread, name: str) -> None:
    end = time.monotonic() + 60
    while server.get_object("namespaces", name) is not None:
        assert time.monotonic() < end


def test_what_is_in_a_namespace_goes_with_it(server: ApiServerThread) -> None:
    create_namespace(server, "x")
    create_pod(server, "x")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    assert server.request("POST", f"{NAMESPACES}/x/configmaps", config)[0] == 201
    code, marked = server.request("DELETE", f"{NAMESPACES}/x")
    assert (code, marked["status"]["phase"]) == (200, "Terminating")
    wait_until_gone(server, "x")
    assert server.list_objects("pods") == []
    assert server.list_objects("configmaps", "x") == []


def test_a_namespace_waits_for_pods_that_a_node_has_to_stop(server: ApiServerThread) -> None:
    create_namespace(server, "x")
    create_pod(server, "x", node="n1")
    server.request("DELETE", f"{NAMESPACES}/x")
    code, refused = server.request(
        "POST",
        f"{NAMESPACES}/x/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}},
    )
    assert (code, refused["reason"]) == (403, "Forbidden")
    pod = server.get_object("pods", "a", "x")
    assert pod is not None
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    options = {"gracePeriodSeconds": 0}
    assert server.request("DELETE", f"{NAMESPACES}/x/pods/a", options)[0] == 200
    wait_until_gone(server, "x")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_stay(server: ApiServerThread, name: str) -> None:
    code, refused = server.request("DELETE", f"{NAMESPACES}/{name}")
    assert (code, refused["reason"]) == (403, "Forbidden")
    assert "may not be deleted" in refused["message"]
