"""The API server is the Service `kubernetes` in `default`, at its own address."""

import ssl
import time
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from podstatus.apiserver.controllers.kubernetes_service import reachable_address
from podstatus.testing.apiserver import ApiServerThread, running_api_server
from podstatus.testing.servers.access import Document

PATH = "/api/v1/namespaces/default/services/kubernetes"


def published(server: ApiServerThread) -> Document:
    code, service = server.request("GET", PATH)
    assert code == 200, service
    return dict(service)


def test_it_answers_at_the_published_address(api_server: ApiServerThread) -> None:
    spec = published(api_server)["spec"]
    assert spec["ports"][0]["name"] == "https"
    port = spec["ports"][0]["port"]
    assert port == urlsplit(api_server.url).port
    context = ssl.create_default_context(cafile=str(api_server.authority))
    connection = HTTPSConnection(spec["clusterIP"], port, context=context, timeout=60)
    connection.request("GET", "/version")
    assert connection.getresponse().status == 200
    connection.close()


def test_the_port_of_the_next_process_replaces_the_old_one(tmp_path: Path) -> None:
    ports = []
    for _ in range(2):
        with running_api_server(tmp_path, durable=True) as server:
            ports.append(published(server)["spec"]["ports"][0]["port"])
            assert ports[-1] == urlsplit(server.url).port


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_it_is_restored(api_server: ApiServerThread, method: str) -> None:
    before = published(api_server)
    patch = {"spec": {"ports": [{"name": "x", "port": 1}]}}
    body = patch if method == "PATCH" else None
    code, _ = api_server.request(method, PATH, body, "application/merge-patch+json")
    assert code == 200
    end = time.monotonic() + 60
    while (code := api_server.request("GET", PATH)[0]) != 200 or (
        published(api_server)["spec"] != before["spec"]
    ):
        assert time.monotonic() < end, code


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),  # noqa: S104 - only compared
        ("::", "::1"),
        ("192.0.2.7", "192.0.2.7"),
        ("host.example.com", ""),
    ],
)
def test_the_address_is_one_that_pods_reach(host: str, address: str) -> None:
    assert reachable_address(host) == address
