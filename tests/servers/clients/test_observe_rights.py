"""What `examples/observer-rbac.yaml` grants is what an observer needs, and no more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.data.deployment_pods import pod
from tests.support.processes.agent_process import until
from tests.support.processes.api_servers import RealServer, own_real_server
from tests.support.processes.observer_process import ObserverProcess, observer

Document = dict[str, Any]

MANIFEST = Path(__file__).parents[3] / "examples" / "observer-rbac.yaml"
ELECTION_MANIFEST = MANIFEST.with_name("observer-leader-election-rbac.yaml")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}/namespaces/{{namespace}}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{{namespace}}/rolebindings",
}
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

NAME = "observed-node"
NODE: Document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}
LEASE: Document = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": NAME},
    "spec": {"renewTime": "2026-11-16T02:48:00.000000Z"},
}
ACCOUNT: Document = {
    "kind": "ServiceAccount",
    "metadata": {"name": "prometheus", "namespace": "podstatus"},
}
ROLE: Document = {
    "kind": "ClusterRole",
    "metadata": {"name": "metrics-of-nodes"},
    "rules": [{"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}],
}
BINDING: Document = {
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "metrics-of-nodes"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "metrics-of-nodes",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "podstatus"}],
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """One of our own: rights are for all of a cluster."""
    with own_real_server(tmp_path_factory.mktemp("real")) as server:
        yield server


def create(server: RealServer, path: str, body: Document) -> None:
    code, answer = server.client.create(path, body)
    assert code in (201, 409), answer


def apply(server: RealServer, manifest: Path = MANIFEST) -> None:
    for document in yaml.safe_load_all(manifest.read_text()):
        namespace = document["metadata"].get("namespace", "")
        create(server, _PATHS[document["kind"]].format(namespace=namespace), document)


def token_of(server: RealServer, account: str) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/podstatus/serviceaccounts/{account}/token"
    code, answer = server.client.create(path, body)
    assert code == 201, answer
    return str(answer["status"]["token"])


def kubeconfig(server: RealServer, folder: Path) -> Path:
    """That of the service account."""
    text = server.access.kubeconfig.read_text()
    found = folder / "kubeconfig"
    found.write_text(text.replace(server.access.token, token_of(server, "observer")))
    return found


@pytest.fixture
def granted(real_server: RealServer, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of one who was granted what the manifest says, for as long as the test."""
    apply(real_server)
    create(real_server, "/api/v1/nodes", NODE)
    create(real_server, _LEASES, LEASE)
    body = pod(0)
    body["spec"]["nodeName"] = NAME
    create(real_server, "/api/v1/namespaces/default/pods", body)
    yield kubeconfig(real_server, tmp_path)
    name = pod(0)["metadata"]["name"]
    real_server.client.delete(f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
    real_server.client.delete(f"/api/v1/nodes/{NAME}")
    real_server.client.delete(f"{_LEASES}/{NAME}")
    real_server.client.delete(f"{_RBAC}/clusterrolebindings/podstatus-observer")


def our_node(looks_on: ObserverProcess) -> Document | None:
    """The node of this page, once it and its pod are known: others may have left theirs."""
    nodes = looks_on.ask("/v1/nodes")["nodes"]
    return next((node for node in nodes if node["name"] == NAME and node["pods"]), None)


def test_the_manifest_grants_what_is_needed(granted: Path, tmp_path: Path) -> None:
    with observer(tmp_path, granted) as looks_on:
        looks_on.start()
        told = until(lambda: our_node(looks_on))
        assert (told["pods"], told["requested"]) == (1, {"cpu": "300m", "memory": "320Mi"})
        until(lambda: (our_node(looks_on) or {})["leaseAgeSeconds"])
        assert "WARNING" not in looks_on.log()


def test_the_manifest_of_the_election_grants_what_is_needed(
    real_server: RealServer, granted: Path, tmp_path: Path
) -> None:
    with observer(tmp_path, granted, "--leader-elect") as looks_on:
        looks_on.start()
        until(lambda: "renewing the lease podstatus/podstatus-observer failed" in looks_on.log())
        leads = 'leader_election_master_status{name="podstatus-observer"}'
        assert f"{leads} 0" in looks_on.ask_text("/metrics")
        apply(real_server, ELECTION_MANIFEST)
        until(lambda: f"{leads} 1" in looks_on.ask_text("/metrics"))
        assert looks_on.stop() == 0
    path = "/apis/coordination.k8s.io/v1/namespaces/podstatus/leases/podstatus-observer"
    code, lease = real_server.client.get(path)
    assert (code, lease["spec"]["holderIdentity"]) == (200, "")


def test_without_rights_to_leases_all_else_is_shown(
    real_server: RealServer, granted: Path, tmp_path: Path
) -> None:
    code, answer = real_server.client.delete(
        f"{_RBAC}/namespaces/kube-node-lease/rolebindings/podstatus-observer"
    )
    assert code == 200, answer
    with observer(tmp_path, granted) as looks_on:
        looks_on.start()
        told = until(lambda: our_node(looks_on))
        assert (told["pods"], told["leaseAgeSeconds"]) == (1, None)
        until(lambda: "watch of leases" in looks_on.log())


@pytest.mark.usefixtures("granted")
def test_the_manifest_grants_no_more(real_server: RealServer) -> None:
    for resource, verb in (
        ("secrets", "list"),
        ("pods", "delete"),
        ("pods", "create"),
        ("nodes", "patch"),
        ("configmaps", "get"),
        ("events", "list"),
    ):
        attributes = {"resource": resource, "verb": verb, "namespace": "default"}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:podstatus:observer",
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "resourceAttributes": attributes,
            },
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        code, answer = real_server.client.create(path, body)
        assert code == 201, answer
        assert not answer["status"]["allowed"], (verb, resource)


@pytest.mark.usefixtures("granted")
def test_who_may_see_the_metrics_of_all_nodes_may_see_those_of_an_observer(
    real_server: RealServer, tmp_path: Path
) -> None:
    for document in (ACCOUNT, ROLE, BINDING):
        namespace = document["metadata"].get("namespace", "")
        create(real_server, _PATHS[document["kind"]].format(namespace=namespace), document)
    options = ("--authentication-token-webhook", "--namespace", "podstatus")
    # Who asks about others has to be somebody that may.
    with observer(tmp_path, real_server.access.kubeconfig, *options) as looks_on:
        looks_on.start()
        asked = {
            who: looks_on.ask_plain("/metrics", token)
            for who, token in (
                ("nobody", ""),
                ("a stranger", "wrong"),
                ("one who may look", token_of(real_server, "observer")),
                ("one who may see metrics", token_of(real_server, "prometheus")),
            )
        }
        codes = {who: code for who, (code, _) in asked.items()}
        assert codes == {
            "nobody": 401,
            "a stranger": 401,
            "one who may look": 403,
            "one who may see metrics": 200,
        }
        assert "podstatus_server_reachable 1" in asked["one who may see metrics"][1]
