"""What the agent of a node may do: the Node authorizer and NodeRestriction, on the real server.

The embedded server has one token and no such rules (docs/decisions/0010).
"""

from collections.abc import Iterator

import pytest

from tests.servers.pods import config_map, created, maps, pod, pods, refusal
from tests.support.processes.agent_process import until
from tests.support.processes.api_servers import NODES, Client, Document, RealServer

FORBIDDEN = (403, "Forbidden")
ME, OTHER = NODES[:2]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MIRROR = {
    "kubernetes.io/config.mirror": "0123456789abcdef",
    "kubernetes.io/config.source": "file",
    "kubernetes.io/config.hash": "0123456789abcdef",
}


@pytest.fixture
def admin(real_server: RealServer) -> Client:
    return real_server.client


@pytest.fixture
def namespace(real_server: RealServer) -> str:
    return real_server.new_namespace()


@pytest.fixture
def agent(real_server: RealServer) -> Iterator[Client]:
    """The agent of `ME`."""
    client = Client(real_server.node_access(ME))
    yield client
    client.close()


@pytest.fixture(autouse=True)
def no_nodes(admin: Client) -> Iterator[None]:
    """Nodes are in no namespace: each case begins and ends without them."""
    yield
    for node in (ME, OTHER):
        admin.delete(f"/api/v1/nodes/{node}")
        admin.delete(f"{LEASES}/{node}")


def node(name: str, **labels: str) -> Document:
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}}


def mirror(name: str, owner: Document, *, on: str) -> Document:
    """A mirror pod as an agent makes it."""
    owned = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return pod(name, node=on, annotations=MIRROR, ownerReferences=[owned])


def test_it_is_who_it_is(agent: Client) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    told = created(agent, path, review)["status"]["userInfo"]
    assert told["username"] == f"system:node:{ME}"
    assert "system:nodes" in told["groups"]


def test_it_registers_itself_and_nobody_else(agent: Client) -> None:
    stored = created(agent, "/api/v1/nodes", node(ME))
    assert agent.get(f"/api/v1/nodes/{ME}") == (200, stored)
    assert refusal(agent.create("/api/v1/nodes", node(OTHER))) == FORBIDDEN


def test_it_reports_its_nodes_status_and_no_others(admin: Client, agent: Client) -> None:
    for name in (ME, OTHER):
        created(admin, "/api/v1/nodes", node(name))
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "m"}
    patch = {"status": {"conditions": [condition]}}
    code, stored = agent.patch(f"/api/v1/nodes/{ME}/status", patch)
    assert (code, [c["type"] for c in stored["status"]["conditions"]]) == (200, ["Ready"])
    assert refusal(agent.patch(f"/api/v1/nodes/{OTHER}/status", patch)) == FORBIDDEN


def test_it_may_not_remove_its_node_nor_change_its_taints(admin: Client, agent: Client) -> None:
    created(admin, "/api/v1/nodes", node(ME))
    taint = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    assert refusal(agent.patch(f"/api/v1/nodes/{ME}", taint)) == FORBIDDEN
    assert refusal(agent.delete(f"/api/v1/nodes/{ME}")) == FORBIDDEN


def test_it_may_register_with_taints(agent: Client) -> None:
    taints = [{"key": "podstatus.dev/process", "effect": "NoExecute"}]
    stored = created(agent, "/api/v1/nodes", node(ME) | {"spec": {"taints": taints}})
    assert taints[0] in stored["spec"]["taints"]


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("kubernetes.io/os", True),
        ("topology.kubernetes.io/zone", True),
        ("kubelet.kubernetes.io/any", True),
        ("node.kubernetes.io/instance-type", True),
        ("example.com/mine", True),
        ("node-restriction.kubernetes.io/team", False),
        ("node-role.kubernetes.io/control-plane", False),
        ("kubernetes.io/other", False),
    ],
)
def test_it_may_not_label_itself_as_it_likes(agent: Client, label: str, allowed: bool) -> None:
    answer = agent.create("/api/v1/nodes", node(ME, **{label: "x"}))
    if allowed:
        assert answer[0] == 201, answer
    else:
        assert refusal(answer) == FORBIDDEN


def test_it_keeps_its_lease_and_no_others(agent: Client) -> None:
    lease = {
        "metadata": {"name": ME},
        "spec": {"holderIdentity": ME, "leaseDurationSeconds": 40},
    }
    stored = created(agent, LEASES, lease)
    stored["spec"]["renewTime"] = "2024-01-01T00:00:00.000000Z"
    code, renewed = agent.replace(f"{LEASES}/{ME}", stored)
    assert (code, renewed["spec"]["renewTime"]) == (200, "2024-01-01T00:00:00.000000Z")
    assert refusal(agent.create(LEASES, lease | {"metadata": {"name": OTHER}})) == FORBIDDEN
    assert refusal(agent.get(f"{LEASES}/{OTHER}")) == FORBIDDEN
    elsewhere = LEASES.replace("kube-node-lease", "default")
    assert refusal(agent.create(elsewhere, lease)) == FORBIDDEN


def test_it_reports_the_status_of_its_pods_and_no_others(
    admin: Client, agent: Client, namespace: str
) -> None:
    for name, on in (("mine", ME), ("theirs", OTHER), ("nobodys", "")):
        created(admin, pods(namespace), pod(name, node=on))
    patch = {"status": {"phase": "Running"}}
    code, stored = agent.patch(pods(namespace, "mine", "status"), patch)
    assert (code, stored["status"]["phase"]) == (200, "Running")
    for name in ("theirs", "nobodys"):
        assert refusal(agent.patch(pods(namespace, name, "status"), patch)) == FORBIDDEN


def test_a_status_may_not_change_labels(admin: Client, agent: Client, namespace: str) -> None:
    created(admin, pods(namespace), pod("a", node=ME))
    patch = {"metadata": {"labels": {"k": "v"}}, "status": {"phase": "Running"}}
    assert refusal(agent.patch(pods(namespace, "a", "status"), patch)) == FORBIDDEN


def test_a_status_may_not_change_claims(admin: Client, agent: Client, namespace: str) -> None:
    body = pod("a", node=ME)
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    created(admin, pods(namespace), body)
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    patch = {"status": {"resourceClaimStatuses": claims}}
    assert refusal(agent.patch(pods(namespace, "a", "status"), patch)) == FORBIDDEN


def test_it_changes_no_spec(admin: Client, agent: Client, namespace: str) -> None:
    created(admin, pods(namespace), pod("a", node=ME))
    patch = {"spec": {"activeDeadlineSeconds": 5}}
    assert refusal(agent.patch(pods(namespace, "a"), patch)) == FORBIDDEN


def test_it_ends_its_pods_and_no_others(admin: Client, agent: Client, namespace: str) -> None:
    uids = {}
    for name, on in (("mine", ME), ("theirs", OTHER)):
        uids[name] = created(admin, pods(namespace), pod(name, node=on))["metadata"]["uid"]
        admin.delete(pods(namespace, name))
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uids["mine"]}}
    assert agent.delete(pods(namespace, "mine"), options)[0] == 200
    assert admin.get(pods(namespace, "mine"))[0] == 404
    options["preconditions"] = {"uid": uids["theirs"]}
    assert refusal(agent.delete(pods(namespace, "theirs"), options)) == FORBIDDEN


def test_it_makes_mirror_pods_of_its_own_and_no_others(
    admin: Client, agent: Client, namespace: str
) -> None:
    mine, other = (created(admin, "/api/v1/nodes", node(name)) for name in (ME, OTHER))
    created(agent, pods(namespace), mirror("a", mine, on=ME))
    refused = {
        "no mirror pod": pod("b", node=ME),
        "on another node": mirror("b", mine, on=OTHER),
        "on no node": mirror("b", mine, on=""),
        "of another owner": mirror("b", other, on=ME),
        "of no owner": pod("b", node=ME, annotations=MIRROR),
    }
    for why, body in refused.items():
        assert agent.create(pods(namespace), body)[0] == 403, why


def test_a_mirror_pod_refers_to_nothing(admin: Client, agent: Client, namespace: str) -> None:
    mine = created(admin, "/api/v1/nodes", node(ME))
    for volume in ({"secret": {"secretName": "s"}}, {"configMap": {"name": "m"}}):
        body = mirror("a", mine, on=ME)
        body["spec"]["volumes"] = [{"name": "v", **volume}]
        assert refusal(agent.create(pods(namespace), body)) == FORBIDDEN


def test_it_reads_what_its_pods_refer_to_and_nothing_else(
    real_server: RealServer, admin: Client, agent: Client, namespace: str
) -> None:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    for name in ("used", "unused"):
        created(admin, maps(namespace), config_map(name))
        created(admin, secrets, {"metadata": {"name": name}})
    body = pod("a", node=ME)
    body["spec"]["volumes"] = [
        {"name": "s", "secret": {"secretName": "used"}},
        {"name": "m", "configMap": {"name": "used"}},
    ]
    with real_server.watch(f"{pods(namespace)}?watch=1") as watch:
        created(admin, pods(namespace), body)
        watch.next()
    for path in (secrets, maps(namespace)):
        # The authorizer learns of the pod from a watch, too.
        wait_for(agent, f"{path}/used", 200)
        assert refusal(agent.get(f"{path}/unused")) == FORBIDDEN
        assert refusal(agent.get(path)) == FORBIDDEN, "no list of all"
    admin.delete(pods(namespace, "a"), {"gracePeriodSeconds": 0})
    wait_for(agent, f"{secrets}/used", 403)


def wait_for(client: Client, path: str, code: int) -> None:
    """Ask until the answer is this one."""
    until(lambda: client.get(path)[0] == code, lambda: client.get(path))


def test_it_lists_and_watches_the_pods_of_its_node(
    admin: Client, agent: Client, namespace: str
) -> None:
    for name, on in (("mine", ME), ("theirs", OTHER)):
        created(admin, pods(namespace), pod(name, node=on))
    path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{ME}"
    code, listed = agent.get(path)
    assert code == 200
    assert {item["spec"]["nodeName"] for item in listed["items"]} == {ME}
    assert agent.get(f"{path}&watch=1&timeoutSeconds=1")[0] == 200
    assert refusal(agent.get(path.replace(ME, OTHER))) == FORBIDDEN
    assert refusal(agent.get("/api/v1/pods")) == FORBIDDEN
    wait_for(agent, pods(namespace, "mine"), 200)
    assert refusal(agent.get(pods(namespace, "theirs"))) == FORBIDDEN


def test_it_records_events(agent: Client, namespace: str) -> None:
    event = {
        "metadata": {"name": "a.1"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "a"},
        "reason": "Started",
        "message": "Container started",
        "type": "Normal",
    }
    created(agent, f"/api/v1/namespaces/{namespace}/events", event)


def test_whoever_has_no_token_or_a_wrong_one_is_nobody(real_server: RealServer) -> None:
    access = real_server.node_access(ME)
    access.token = "wrong"  # noqa: S105 - that is the point
    client = Client(access)
    assert refusal(client.get("/api/v1/nodes")) == (401, "Unauthorized")
    client.close()


def test_an_agent_may_declare_that_it_speaks_websocket(agent: Client) -> None:
    created(agent, "/api/v1/nodes", node(ME))
    status = {"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}}
    code, answer = agent.patch(f"/api/v1/nodes/{ME}/status", status)
    assert (code, answer["status"]["declaredFeatures"]) == (200, ["ExtendWebSocketsToKubelet"])


def test_it_lists_the_services_of_all_namespaces(agent: Client, namespace: str) -> None:
    code, found = agent.get("/api/v1/services")
    assert code == 200
    assert "kubernetes" in [item["metadata"]["name"] for item in found["items"]]
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    path = f"/api/v1/namespaces/{namespace}/services"
    assert refusal(agent.create(path, service)) == FORBIDDEN
