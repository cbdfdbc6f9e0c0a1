"""Tokens are issued for service accounts, bound to pods, and end with what they are bound to."""

from pathlib import Path
from typing import Any

import pytest

from podstatus.testing.apiserver import ApiServerThread, running_api_server
from podstatus.testing.servers.access import Document, ServerAccess

NAMESPACE = "/api/v1/namespaces/default"
TOKENS = f"{NAMESPACE}/serviceaccounts/robot/token"
POD: Document = {
    "metadata": {"name": "web"},
    "spec": {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "a"}]},
}


class Client(ServerAccess):
    """A client with another token."""

    def __init__(self, server: ApiServerThread, token: str) -> None:
        super().__init__(server.folder)
        self.token = token

    def code(self, path: str, method: str = "GET") -> int:
        return self.request(method, path)[0]


@pytest.fixture
def server(api_server: ApiServerThread) -> ApiServerThread:
    create(api_server, "serviceaccounts", {"metadata": {"name": "robot"}})
    return api_server


def create(server: ApiServerThread, plural: str, document: Document) -> Document:
    code, created = server.request("POST", f"{NAMESPACE}/{plural}", document)
    assert code == 201, created
    return dict(created)


def issue(server: ApiServerThread, **spec: Any) -> Document:
    code, issued = server.request("POST", TOKENS, {"spec": spec})
    assert code == 201, issued
    return dict(issued)


def test_a_token_reads_its_namespace_until_its_account_is_gone(server: ApiServerThread) -> None:
    issued = issue(server)
    assert issued["spec"]["expirationSeconds"] == 3600
    client = Client(server, issued["status"]["token"])
    assert client.code(f"{NAMESPACE}/pods") == 200
    assert client.code(f"{NAMESPACE}/secrets") == 403
    assert client.code("/api/v1/nodes") == 403
    assert client.code("/podstatus/faults") == 403
    assert client.code("/version") == 200
    assert client.code(f"{NAMESPACE}/pods/web", "DELETE") == 403
    server.request("DELETE", f"{NAMESPACE}/serviceaccounts/robot")
    assert client.code(f"{NAMESPACE}/pods") == 401
    create(server, "serviceaccounts", {"metadata": {"name": "robot"}})
    assert client.code(f"{NAMESPACE}/pods") == 401


def test_a_bound_token_ends_with_its_pod(server: ApiServerThread) -> None:
    uid = create(server, "pods", POD)["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": uid}
    client = Client(server, issue(server, boundObjectRef=bound)["status"]["token"])
    assert client.code(f"{NAMESPACE}/pods/web") == 200
    server.request("DELETE", f"{NAMESPACE}/pods/web")
    assert client.code(f"{NAMESPACE}/pods") == 401
    create(server, "pods", POD)
    assert client.code(f"{NAMESPACE}/pods") == 401


def test_a_token_for_others_is_not_accepted_here(server: ApiServerThread) -> None:
    client = Client(server, issue(server, audiences=["vault"])["status"]["token"])
    assert client.code(f"{NAMESPACE}/pods") == 401


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ({"expirationSeconds": 599}, 422, "less than 10 minutes"),
        ({"expirationSeconds": 2**32 + 1}, 422, "larger than 2^32 seconds"),
        ({"expirationSeconds": "1h"}, 400, "expirationSeconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}, 404, "not found"),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": "x"}},
            409,
            "does not match the UID",
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}},
            400,
            "running with different serviceaccount name",
        ),
        ({"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n"}}, 400, "Kind=Node"),
    ],
)
def test_invalid_requests_are_rejected(
    server: ApiServerThread, spec: Document, code: int, message: str
) -> None:
    create(server, "pods", POD)
    other = {"metadata": {"name": "other"}, "spec": {"containers": POD["spec"]["containers"]}}
    create(server, "pods", other)
    actual, answer = server.request("POST", TOKENS, {"spec": spec})
    assert (actual, message in answer["message"]) == (code, True), answer


def test_an_account_that_does_not_exist_has_no_token(server: ApiServerThread) -> None:
    path = f"{NAMESPACE}/serviceaccounts/none/token"
    assert server.request("POST", path, {"spec": {}})[0] == 404
    assert server.request("GET", TOKENS)[0] == 405


def test_a_review_names_the_account_and_allows_nothing(server: ApiServerThread) -> None:
    token = issue(server)["status"]["token"]
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    _, review = server.request("POST", path, {"spec": {"token": token}})
    user = review["status"]["user"]
    assert user["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in user["groups"]
    asked = {"user": user["username"], "groups": user["groups"]}
    attributes = {"resourceAttributes": {"verb": "get", "resource": "nodes"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    _, answer = server.request("POST", path, {"spec": asked | attributes})
    assert answer["status"]["allowed"] is False


def test_tokens_of_an_earlier_process_stay_valid(tmp_path: Path) -> None:
    with running_api_server(tmp_path, durable=True) as first:
        create(first, "serviceaccounts", {"metadata": {"name": "robot"}})
        token = issue(first)["status"]["token"]
    with running_api_server(tmp_path, durable=True) as second:
        assert Client(second, token).code(f"{NAMESPACE}/pods") == 200
