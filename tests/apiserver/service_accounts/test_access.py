"""What a service account may do."""

import pytest

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.request.request_info import RequestInfo, request_info
from podstatus.apiserver.service_accounts.access import ClientIdentity, authorize
from podstatus.apiserver.service_accounts.authenticator import OWNER

ROBOT = ClientIdentity(name="system:serviceaccount:ns:robot", namespace="ns")


def info(
    verb: str, resource: str = "", namespace: str = "ns", name: str = "", path: str = "/api/v1/x"
) -> RequestInfo:
    return RequestInfo(verb=verb, resource=resource, namespace=namespace, name=name, path=path)


@pytest.mark.parametrize(
    "request_info",
    [
        info("get", "pods", name="web"),
        info("list", "pods"),
        info("watch", "services"),
        info("get", "pods/log", name="web"),
        info("get", "pods/status", name="web"),
        info("get", path="/version"),
        info("get", path="/openapi/v3"),
        info("get", path="/apis"),
    ],
)
def test_it_reads_its_namespace_and_discovery(request_info: RequestInfo) -> None:
    authorize(ROBOT, request_info)


@pytest.mark.parametrize(
    "request_info",
    [
        info("get", "secrets", name="s"),
        info("list", "secrets"),
        info("list", "pods", namespace=""),
        info("list", "pods", namespace="other"),
        info("get", "nodes", namespace="", name="n"),
        info("get", "nodes/proxy", namespace="", name="n"),
        info("get", "pods/exec", name="web"),
        info("get", "pods/attach", name="web"),
        info("create", "serviceaccounts/token", name="robot"),
        info("create", "pods"),
        info("patch", "pods/status", name="web"),
        info("delete", "pods", name="web"),
        info("deletecollection", "pods"),
        info("get", path="/podstatus/faults"),
        info("create", path="/apis/authentication.k8s.io/v1/tokenreviews"),
        info("head", "pods"),
    ],
)
def test_everything_else_is_forbidden(request_info: RequestInfo) -> None:
    with pytest.raises(StatusError) as refused:
        authorize(ROBOT, request_info)
    assert refused.value.code == 403
    authorize(OWNER, request_info)


def test_the_message_is_that_of_upstream_and_the_rule() -> None:
    with pytest.raises(StatusError) as refused:
        authorize(ROBOT, info("delete", "pods", name="web"))
    assert refused.value.message == (
        'pods "web" is forbidden: User "system:serviceaccount:ns:robot" cannot delete resource '
        '"pods" in API group "" in the namespace "ns": a service account may read its own '
        "namespace, except secrets"
    )


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("namespaces/ns/pods", True),
        ("namespaces/ns/pods/web", True),
        ("namespaces/other/pods", False),
        ("pods", False),
        ("nodes", False),
    ],
)
def test_it_reads_the_metrics_of_its_namespace(path: str, allowed: bool) -> None:
    request = HttpRequest(method="GET", path=f"/apis/metrics.k8s.io/v1beta1/{path}", query={})
    if allowed:
        authorize(ROBOT, request_info(request))
        return
    with pytest.raises(StatusError) as refused:
        authorize(ROBOT, request_info(request))
    assert refused.value.code == 403
