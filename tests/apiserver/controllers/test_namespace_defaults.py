"""Every namespace has the ServiceAccount `default` and the CA certificate."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerThread, running_api_server

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path, schedule=True) as running:
        yield running


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end


def has_both(server: ApiServerThread, namespace: str) -> bool:
    config = server.get_object("configmaps", "kube-root-ca.crt", namespace)
    account = server.get_object("serviceaccounts", "default", namespace)
    authority = server.authority.read_text()
    return account is not None and config is not None and config["data"] == {"ca.crt": authority}


def test_existing_and_new_namespaces_have_them(server: ApiServerThread) -> None:
    assert server.request("POST", NAMESPACES, {"metadata": {"name": "x"}})[0] == 201
    for namespace in ("default", "kube-system", "x"):
        until(partial(has_both, server, namespace))


def test_they_are_restored(server: ApiServerThread) -> None:
    until(lambda: has_both(server, "default"))
    path = f"{NAMESPACES}/default"
    patch = {"data": {"ca.crt": "other", "more": "x"}}
    config = f"{path}/configmaps/kube-root-ca.crt"
    assert server.request("PATCH", config, patch, "application/merge-patch+json")[0] == 200
    assert server.request("DELETE", f"{path}/serviceaccounts/default")[0] == 200
    until(lambda: has_both(server, "default"))


def test_a_namespace_can_be_deleted(server: ApiServerThread) -> None:
    server.request("POST", NAMESPACES, {"metadata": {"name": "x"}})
    until(lambda: has_both(server, "x"))
    assert server.request("DELETE", f"{NAMESPACES}/x")[0] == 200
    until(lambda: server.get_object("namespaces", "x") is None)
    assert server.list_objects("serviceaccounts", "x") == []
    assert server.list_objects("configmaps", "x") == []
