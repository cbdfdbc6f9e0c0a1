"""Who somebody is and what they may do, as agents ask it about those who ask them."""

from typing import Any

import pytest

from tests.support.processes.api_servers import Server

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
NODES_LOG = {"verb": "get", "resource": "nodes", "subresource": "log", "name": "node-a"}


def review(kind: str, group: str, **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": f"{group}.k8s.io/v1", "spec": spec}


def access(**spec: Any) -> dict[str, Any]:
    return review("SubjectAccessReview", "authorization", **spec)


def test_a_token_of_the_server_is_known(server: Server) -> None:
    asked = review("TokenReview", "authentication", token=server.access.token)
    code, answer = server.client.create(TOKENS, asked)
    assert (code, answer["kind"]) == (201, "TokenReview")
    status = answer["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == ("admin" if server.is_real else "podstatus")
    assert {"system:masters", "system:authenticated"} <= set(status["user"]["groups"])


def test_a_token_of_somebody_else_is_not(server: Server) -> None:
    asked = review("TokenReview", "authentication", token="made-up")  # noqa: S106
    code, answer = server.client.create(TOKENS, asked)
    assert (code, answer["status"]["user"]) == (201, {})
    assert not answer["status"].get("authenticated")
    assert "invalid bearer token" in answer["status"]["error"]


def test_a_token_is_needed(server: Server) -> None:
    code, answer = server.client.create(TOKENS, review("TokenReview", "authentication"))
    told = "token is required for TokenReview in authentication"
    assert (code, answer["message"]) == (400, told)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"user": "podstatus-apiserver", "groups": ["system:masters"]}, True),
        ({"user": "somebody", "groups": ["system:masters", "x"]}, True),
        ({"user": "somebody", "groups": ["system:authenticated"]}, False),
        ({"user": "system:anonymous", "groups": ["system:unauthenticated"]}, False),
    ],
)
def test_whoever_is_known_may(server: Server, spec: dict[str, Any], allowed: bool) -> None:
    code, answer = server.client.create(ACCESS, access(**spec, resourceAttributes=NODES_LOG))
    assert (code, answer["status"]["allowed"]) == (201, allowed)
    assert answer["spec"]["resourceAttributes"] == NODES_LOG


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"user": "a"}, ["spec.resourceAttributes"]),
        ({"resourceAttributes": NODES_LOG}, ["spec.user"]),
        (
            {
                "user": "a",
                "resourceAttributes": NODES_LOG,
                "nonResourceAttributes": {"verb": "get", "path": "/"},
            },
            ["spec.nonResourceAttributes"],
        ),
    ],
)
def test_questions_that_make_no_sense(
    server: Server, spec: dict[str, Any], fields: list[str]
) -> None:
    code, answer = server.client.create(ACCESS, access(**spec))
    assert code == 422
    assert [cause["field"] for cause in answer["details"]["causes"]] == fields


@pytest.mark.parametrize("path", [TOKENS, ACCESS])
def test_reviews_are_not_kept(server: Server, path: str) -> None:
    assert server.client.get(path)[0] == 405
