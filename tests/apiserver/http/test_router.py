import pytest

from podstatus.apiserver.http.router import parse_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ("pods", None, None, "")),
        ("/api/v1/namespaces/x/pods", ("pods", "x", None, "")),
        ("/api/v1/namespaces/x/pods/a", ("pods", "x", "a", "")),
        ("/api/v1/namespaces/x/pods/a/status", ("pods", "x", "a", "status")),
        ("/api/v1/namespaces", ("namespaces", None, None, "")),
        ("/api/v1/namespaces/x", ("namespaces", None, "x", "")),
        ("/api/v1/namespaces/x/status", ("namespaces", None, "x", "status")),
        ("/api/v1/nodes/n1/status", ("nodes", None, "n1", "status")),
        ("/apis/coordination.k8s.io/v1/namespaces/x/leases/l", ("leases", "x", "l", "")),
        ("/api/v1/namespaces/x/pods/a%2Fb", ("pods", "x", "a/b", "")),
    ],
)
def test_a_path_leads_to_objects(
    path: str, expected: tuple[str, str | None, str | None, str]
) -> None:
    target = parse_path(path)
    assert target is not None
    parts = (target.resource.plural, target.namespace, target.name, target.subresource)
    assert parts == expected


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        "/api/v1",
        "/api/v2/pods",
        "/api/v1/nothing",
        "/api/v1/pods/a",
        "/api/v1/namespaces/x/nodes",
        "/api/v1/namespaces/x/pods/a/bogus",
        "/api/v1/namespaces/x/pods/a/status/more",
        "/api/v1/namespaces//pods",
        "/api/v1/leases",
        "/apis/coordination.k8s.io/v1/pods",
        "/apis/none.example/v1/x",
    ],
)
def test_a_path_leads_nowhere(path: str) -> None:
    assert parse_path(path) is None
