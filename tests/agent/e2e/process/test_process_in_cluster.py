"""A program in a pod finds the API server and reads its own pod, as in-cluster clients do."""

import json
from collections.abc import Iterator

import pytest

from tests.support.processes.agent_process import Document
from tests.support.processes.process_node import ProcessNode, command_pod, process_node, python_pod

_CLIENT = """
import http.client, json, os, ssl, sys
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
read = lambda name: open(f"{folder}/{name}").read()
context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
def get(path):
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
    connection.request("GET", path, headers={"Authorization": "Bearer " + read("token")})
    response = connection.getresponse()
    return response.status, json.load(response)
namespace = f"/api/v1/namespaces/{read('namespace')}"
code, pods = get(f"{namespace}/pods")
print(json.dumps({
    "code": code,
    "pods": [pod["metadata"]["name"] for pod in pods["items"]],
    "secrets": get(f"{namespace}/secrets")[0],
    "others": get("/api/v1/pods")[0],
    "version": get("/version")[1]["gitVersion"],
    "arguments": sys.argv[1:],
}))
"""


@pytest.fixture(scope="module")
def node() -> Iterator[ProcessNode]:
    with process_node(isolation="bubblewrap") as node:
        node.start_ready()
        yield node


def test_a_client_in_a_pod_lists_its_pod(node: ProcessNode) -> None:
    arguments = ("$(KUBERNETES_SERVICE_HOST)", "$(WEB_SERVICE_HOST)")
    service: Document = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    service["spec"]["clusterIP"] = "127.0.0.9"
    path = "/api/v1/namespaces/default/services"
    code, answer = node.cluster.access.request("POST", path, service)
    assert code == 201, answer
    pod = python_pod("client", _CLIENT, *arguments, automountServiceAccountToken=True)
    node.cluster.create(pod)
    result = node.result("client")
    assert result["code"] == 200
    assert "client" in result["pods"]
    assert (result["secrets"], result["others"]) == (403, 403)
    assert result["version"].startswith("v1.36")
    assert result["arguments"][0] == "127.0.0.1"


@pytest.mark.slow
def test_without_service_links_only_the_api_server_is_visible(node: ProcessNode) -> None:
    script = "import json, os; print(json.dumps(sorted(os.environ)))"
    node.cluster.create(python_pod("unlinked", script, enableServiceLinks=False))
    names = node.result("unlinked")
    assert "KUBERNETES_PORT_443_TCP" not in names  # the port is the server's own
    assert "KUBERNETES_SERVICE_PORT_HTTPS" in names
    assert not [name for name in names if name.startswith("WEB_")]


@pytest.mark.slow
def test_the_token_of_a_deleted_pod_is_rejected(node: ProcessNode) -> None:
    path = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    pod = command_pod("short", "sh", "-c", f"cat {path}; sleep 1000")
    pod["spec"]["automountServiceAccountToken"] = True
    node.cluster.create(pod)
    node.cluster.wait_ready("short")
    token, _ = node.exec("short", "cat", path)
    assert _status(node, token) == 200
    node.cluster.delete("short")
    node.cluster.wait_gone("short")
    assert _status(node, token) == 401


def _status(node: ProcessNode, token: str) -> int:
    connection = node.cluster.access.connect()
    try:
        path = "/api/v1/namespaces/default/pods"
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        json.load(response)
        return response.status
    finally:
        connection.close()
