"""The usual kubectl commands work, without warnings."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL, Kubectl
from tests.support.processes.programs import api_server

pytestmark = pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)

NODE = "node-a"
_names = (f"ns-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """One server for all tests; each uses its own namespace."""
    with api_server() as server:
        kubectl = Kubectl(server, tmp_path_factory.mktemp("home"))
        kubectl("create", "-f", "-", input=json.dumps(NODE_OBJECT))
        yield kubectl


def new_namespace(kubectl: Kubectl) -> str:
    name = next(_names)
    kubectl("create", "namespace", name)
    return f"--namespace={name}"


@pytest.fixture
def ns(kubectl: Kubectl) -> str:
    return new_namespace(kubectl)


NODE_OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NODE, "labels": {"zone": "here"}},
}


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": NODE, "containers": [container]} | spec,
    }


def create(kubectl: Kubectl, ns: str, *objects: dict[str, Any]) -> None:
    kubectl(ns, "create", "-f", "-", input=yaml.safe_dump_all(objects))


def apply(kubectl: Kubectl, ns: str, document: dict[str, Any]) -> str:
    return kubectl(ns, "apply", "-f", "-", input=yaml.safe_dump(document)).strip()


def get(kubectl: Kubectl, ns: str, *what: str) -> Any:
    return json.loads(kubectl(ns, "get", *what, "-o", "json"))


def make_ready(kubectl: Kubectl, ns: str, name: str = "web") -> None:
    """Do what the agent on the node would do."""
    running = {"running": {"startedAt": "2024-01-01T00:00:00Z"}}
    status = {
        "phase": "Running",
        "podIP": "10.1.0.7",
        "podIPs": [{"ip": "10.1.0.7"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "main",
                "image": "nginx:1",
                "imageID": "",
                "ready": True,
                "restartCount": 2,
                "state": running,
            }
        ],
    }
    patch = json.dumps({"status": status})
    kubectl(ns, "patch", "pod", name, "--subresource=status", "--type=strategic", "-p", patch)


def rows(text: str) -> list[list[str]]:
    """Return the cells of a table, without its header."""
    return [line.split() for line in text.splitlines()[1:]]


def test_create_says_so_and_fills_in_defaults(kubectl: Kubectl, ns: str) -> None:
    output = kubectl(ns, "create", "-f", "-", input=yaml.safe_dump(pod()))
    assert output == "pod/web created\n"
    spec = get(kubectl, ns, "pod", "web")["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)


def test_create_of_something_that_exists_is_refused(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    ran = kubectl.run(ns, "create", "-f", "-", input=json.dumps(pod()))
    assert ran.code == 1
    assert "(AlreadyExists)" in ran.errors
    assert 'pods "web" already exists' in ran.errors


def test_a_misspelt_field_is_refused_by_name(kubectl: Kubectl, ns: str) -> None:
    misspelt = pod(restartPolice="Never")
    ran = kubectl.run(ns, "create", "-f", "-", input=json.dumps(misspelt))
    assert ran.code == 1
    assert 'unknown field "spec.restartPolice"' in ran.errors


def test_an_invalid_object_is_refused_with_the_field(kubectl: Kubectl, ns: str) -> None:
    ran = kubectl.run(ns, "create", "-f", "-", input=json.dumps(pod(containers=[])))
    assert ran.code == 1
    assert "spec.containers: Required value" in ran.errors


def test_run_creates_a_pod(kubectl: Kubectl, ns: str) -> None:
    assert kubectl(ns, "run", "quick", "--image=nginx") == "pod/quick created\n"
    assert get(kubectl, ns, "pod", "quick")["spec"]["containers"][0]["image"] == "nginx"


def test_get_pods_is_a_table(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod("a"), pod("b"))
    make_ready(kubectl, ns, "b")
    output = kubectl(ns, "get", "pods")
    assert output.split("\n")[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in rows(output)] == [
        ["a", "0/1", "Pending", "0"],
        ["b", "1/1", "Running", "2"],
    ]


def test_get_pods_wide_tells_address_and_node(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    make_ready(kubectl, ns)
    (row,) = rows(kubectl(ns, "get", "pods", "-o", "wide"))
    assert row[5:7] == ["10.1.0.7", NODE]


def test_get_pods_of_all_namespaces(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod("everywhere"))
    output = rows(kubectl("get", "pods", "-A"))
    assert [ns.partition("=")[2], "everywhere"] in [row[:2] for row in output]


def test_get_of_nothing_says_so(kubectl: Kubectl, ns: str) -> None:
    ran = kubectl.run(ns, "get", "pods")
    assert (ran.code, ran.out) == (0, "")
    assert ran.errors.startswith("No resources found in ")
    ran = kubectl.run(ns, "get", "pod", "none")
    assert ran.errors == 'Error from server (NotFound): pods "none" not found\n'


def test_get_yaml_can_be_read_back(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    output = yaml.safe_load(kubectl(ns, "get", "pod", "web", "-o", "yaml"))
    assert (output["apiVersion"], output["kind"]) == ("v1", "Pod")
    assert output["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_get_list_yaml_carries_kinds(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod("a"), pod("b"))
    output = yaml.safe_load(kubectl(ns, "get", "pods", "-o", "yaml"))
    assert [(item["apiVersion"], item["kind"]) for item in output["items"]] == [("v1", "Pod")] * 2


def test_get_names(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod("a"), pod("b"))
    assert kubectl(ns, "get", "po", "-o", "name") == "pod/a\npod/b\n"


@pytest.fixture(scope="module")
def two_pods(kubectl: Kubectl) -> str:
    """A namespace with one pod on a node and one on none."""
    ns = new_namespace(kubectl)
    create(kubectl, ns, pod("here"), pod("nowhere", nodeName=""))
    return ns


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([f"--field-selector=spec.nodeName={NODE}"], ["pod/here"]),
        (["--field-selector=spec.nodeName="], ["pod/nowhere"]),
        (["--field-selector=metadata.name=here"], ["pod/here"]),
        (["--field-selector=status.phase!=Pending"], []),
        (["-l", "app=web"], ["pod/here", "pod/nowhere"]),
        (["-l", "app notin (web)"], []),
    ],
)
def test_selectors(kubectl: Kubectl, two_pods: str, options: list[str], names: list[str]) -> None:
    assert kubectl(two_pods, "get", "pods", "-o", "name", *options).split() == names


def test_large_lists_come_in_chunks(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod("a"), pod("b"), pod("c"))
    output = kubectl(ns, "get", "pods", "--chunk-size=1")
    assert [row[0] for row in rows(output)] == ["a", "b", "c"]


def test_watch_prints_every_change(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    with kubectl.running(ns, "get", "pods", "-w", "--no-headers") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:3] == ["web", "0/1", "Pending"]
        make_ready(kubectl, ns)
        assert watching.stdout.readline().split()[:3] == ["web", "1/1", "Running"]
        kubectl(ns, "delete", "pod", "web", "--wait=false")
        assert watching.stdout.readline().split()[:3] == ["web", "1/1", "Terminating"]


def test_wait_for_a_condition(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    waiting = (ns, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
    with kubectl.running(*waiting) as process:
        make_ready(kubectl, ns)
        out, errors = process.communicate(timeout=90)
    assert (process.returncode, out, errors) == (0, "pod/web condition met\n", "")


def test_wait_for_deletion(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    with kubectl.running(ns, "wait", "--for=delete", "pod/web", "--timeout=90s") as process:
        kubectl(ns, "delete", "pod", "web", "--grace-period=1", "--wait=false")
        kubectl.run(ns, "delete", "pod", "web", "--grace-period=0", "--force", "--wait=false")
        _, errors = process.communicate(timeout=90)
    # A request after the deletion fails with NotFound, which is fine.
    assert process.returncode == 0 or "not found" in errors


def test_describe_pod_tells_its_events(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    create(kubectl, ns, event(get(kubectl, ns, "pod", "web")))
    output = kubectl(ns, "describe", "pod", "web")
    lines = [line.split() for line in output.splitlines()]
    assert ["Name:", "web"] in lines
    assert ["Node:", f"{NODE}/"] in lines
    assert lines[-1][-3:] == ["Started", "container", "main"]


def event(about: dict[str, Any]) -> dict[str, Any]:
    metadata = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "type": "Normal",
        "reason": "Started",
        "message": "Started container main",
        "source": {"component": "kubelet", "host": NODE},
        "firstTimestamp": "2024-01-01T00:00:00Z",
        "lastTimestamp": "2024-01-01T00:00:00Z",
        "count": 1,
    }


def test_get_events(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    create(kubectl, ns, event(get(kubectl, ns, "pod", "web")))
    (row,) = rows(kubectl(ns, "get", "events"))
    assert row[1:] == ["Normal", "Started", "pod/web", "Started", "container", "main"]
    assert "Started container main" in kubectl(ns, "events")


def test_get_and_describe_nodes(kubectl: Kubectl) -> None:
    (row,) = rows(kubectl("get", "nodes"))
    assert row[:3] == [NODE, "Unknown", "<none>"]
    assert "zone=here" in kubectl("describe", "node", NODE)


def test_cordon_and_taint(kubectl: Kubectl) -> None:
    kubectl("cordon", NODE)
    assert rows(kubectl("get", "nodes"))[0][1] == "Unknown,SchedulingDisabled"
    kubectl("uncordon", NODE)
    kubectl("taint", "node", NODE, "a=b:NoSchedule")
    taints = get(kubectl, "--namespace=default", "node", NODE)["spec"]["taints"]
    assert {"key": "a", "value": "b", "effect": "NoSchedule"} in taints
    kubectl("taint", "node", NODE, "a-")


def test_apply_creates_configures_and_leaves_alone(kubectl: Kubectl, ns: str) -> None:
    document = pod()
    assert apply(kubectl, ns, document) == "pod/web created"
    assert apply(kubectl, ns, document) == "pod/web unchanged"
    document["metadata"]["labels"] = {"tier": "front"}
    assert apply(kubectl, ns, document) == "pod/web configured"
    assert get(kubectl, ns, "pod", "web")["metadata"]["labels"] == {"tier": "front"}


def test_apply_merges_lists_by_their_key(kubectl: Kubectl, ns: str) -> None:
    two = [{"name": "main", "image": "nginx:1"}, {"name": "side", "image": "busybox:1"}]
    apply(kubectl, ns, pod(containers=two))
    two[1]["image"] = "busybox:2"
    assert apply(kubectl, ns, pod(containers=two)) == "pod/web configured"
    containers = get(kubectl, ns, "pod", "web")["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [
        ("main", "nginx:1"),
        ("side", "busybox:2"),
    ]
    assert containers[1]["imagePullPolicy"] == "IfNotPresent"


def test_apply_keeps_the_changes_of_another_client(kubectl: Kubectl, ns: str) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    apply(kubectl, ns, config | {"data": {"ours": "1", "old": "1"}})
    kubectl(ns, "patch", "cm", "c", "-p", '{"data": {"theirs": "1"}}')
    apply(kubectl, ns, config | {"data": {"ours": "2"}})
    assert get(kubectl, ns, "cm", "c")["data"] == {"ours": "2", "theirs": "1"}


def test_server_side_apply_is_refused_with_a_sentence(kubectl: Kubectl, ns: str) -> None:
    ran = kubectl.run(ns, "apply", "--server-side", "-f", "-", input=json.dumps(pod()))
    assert ran.code == 1
    assert "does not support server-side apply; use client-side apply" in ran.errors


def test_port_forward_is_refused_with_a_sentence(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    running = json.dumps({"status": {"phase": "Running"}})
    kubectl(ns, "patch", "pod", "web", "--subresource=status", f"--patch={running}")
    ran = kubectl.run(ns, "port-forward", "web", ":80")
    assert ran.code == 1
    assert "port-forward is not supported" in ran.errors
    assert "connect to the port of the container on this machine" in ran.errors


def test_dry_run_stores_nothing(kubectl: Kubectl, ns: str) -> None:
    output = kubectl(ns, "create", "--dry-run=server", "-f", "-", input=json.dumps(pod()))
    assert output == "pod/web created (server dry run)\n"
    assert kubectl(ns, "get", "pods", "-o", "name") == ""


def test_label_and_annotate(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    assert kubectl(ns, "label", "pod", "web", "tier=front", "app-") == "pod/web labeled\n"
    assert kubectl(ns, "annotate", "pod", "web", "why=test") == "pod/web annotated\n"
    metadata = get(kubectl, ns, "pod", "web")["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"tier": "front"}, {"why": "test"})


PATCHES = {
    "strategic": '{"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}',
    "merge": '{"metadata": {"labels": {"app": null, "tier": "front"}}}',
    "json": '[{"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:2"}]',
}


@pytest.mark.parametrize("kind", PATCHES)
def test_patch_of_each_type(kubectl: Kubectl, ns: str, kind: str) -> None:
    create(kubectl, ns, pod())
    output = kubectl(ns, "patch", "pod", "web", f"--type={kind}", "-p", PATCHES[kind])
    assert output == "pod/web patched\n"
    changed = get(kubectl, ns, "pod", "web")
    if kind == "merge":
        assert changed["metadata"]["labels"] == {"tier": "front"}
    else:
        assert changed["spec"]["containers"][0]["image"] == "nginx:2"
    again = kubectl(ns, "patch", "pod", "web", f"--type={kind}", "-p", PATCHES[kind])
    assert again == "pod/web patched (no change)\n"


def test_replace(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    document = get(kubectl, ns, "pod", "web")
    document["metadata"]["labels"] = {"tier": "front"}
    output = kubectl(ns, "replace", "-f", "-", input=json.dumps(document))
    assert output == "pod/web replaced\n"
    document["metadata"]["labels"] = {"tier": "back"}
    stale = kubectl.run(ns, "replace", "-f", "-", input=json.dumps(document))
    assert "(Conflict)" in stale.errors


def test_edit_with_an_editor(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    kubectl.environment["KUBE_EDITOR"] = "sed -i s/nginx:1/nginx:2/"
    try:
        assert kubectl(ns, "edit", "pod", "web") == "pod/web edited\n"
    finally:
        del kubectl.environment["KUBE_EDITOR"]
    assert get(kubectl, ns, "pod", "web")["spec"]["containers"][0]["image"] == "nginx:2"


def test_a_resize_by_patch_and_with_an_editor(kubectl: Kubectl, ns: str) -> None:
    roomy = {"status": {"allocatable": {"cpu": "2", "memory": "2Gi"}}}
    kubectl("patch", "node", NODE, "--subresource=status", "-p", json.dumps(roomy))
    container = {"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": "100m"}}}
    create(kubectl, ns, pod(containers=[container]))
    larger = {"spec": {"containers": [container | {"resources": {"requests": {"cpu": "200m"}}}]}}
    output = kubectl(ns, "patch", "pod", "web", "--subresource=resize", "-p", json.dumps(larger))
    assert output == "pod/web patched\n"
    kubectl.environment["KUBE_EDITOR"] = "sed -i s/200m/300m/"
    try:
        edited = kubectl(ns, "edit", "pod", "web", "--subresource=resize")
    finally:
        del kubectl.environment["KUBE_EDITOR"]
    assert edited == "pod/web edited\n"
    stored = get(kubectl, ns, "pod", "web")
    assert stored["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "300m"}}
    assert stored["metadata"]["generation"] == 3


def test_delete_with_grace_leaves_the_rest_to_the_node(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    make_ready(kubectl, ns)
    kubectl(ns, "delete", "pod", "web", "--grace-period=7", "--wait=false")
    metadata = get(kubectl, ns, "pod", "web")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 7
    assert metadata["deletionTimestamp"]


def test_forced_deletion_is_at_once(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    ran = kubectl.run(ns, "delete", "pod", "web", "--grace-period=0", "--force")
    assert (ran.code, ran.out) == (0, 'pod "web" force deleted\n')
    assert kubectl(ns, "get", "pods", "-o", "name") == ""


def test_delete_of_a_pod_without_a_node_is_immediate(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod(nodeName=""))
    assert 'pod "web" deleted' in kubectl(ns, "delete", "pod", "web")


def test_delete_by_label(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod("a", nodeName=""), pod("b", nodeName=""))
    kubectl(ns, "delete", "pods", "-l", "app=web")
    assert kubectl(ns, "get", "pods", "-o", "name") == ""


def test_plain_storage(kubectl: Kubectl, ns: str) -> None:
    kubectl(ns, "create", "configmap", "c", "--from-literal=a=b")
    kubectl(ns, "create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl(ns, "create", "serviceaccount", "robot")
    assert get(kubectl, ns, "cm", "c")["data"] == {"a": "b"}
    assert get(kubectl, ns, "secret", "s")["data"] == {"a": "Yg=="}
    assert "serviceaccount/robot" in kubectl(ns, "get", "sa", "-o", "name")


def test_get_all_finds_the_pods(kubectl: Kubectl, ns: str) -> None:
    create(kubectl, ns, pod())
    # A single kind is printed without its name before the slash.
    assert rows(kubectl(ns, "get", "pods"))[0][0] == "web"
    assert rows(kubectl(ns, "get", "all"))[0][0] == "pod/web"


def test_services_and_tokens(kubectl: Kubectl, ns: str) -> None:
    kubectl(ns, "create", "service", "clusterip", "web", "--tcp=80:8080", "--clusterip=None")
    assert rows(kubectl(ns, "get", "svc"))[0][:5] == [
        "web",
        "ClusterIP",
        "None",
        "<none>",
        "80/TCP",
    ]
    kubectl(ns, "create", "serviceaccount", "robot")
    assert kubectl(ns, "create", "token", "robot").count(".") == 2


def test_raw_paths(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    listed = json.loads(kubectl("get", "--raw", "/api/v1/namespaces"))
    assert listed["kind"] == "NamespaceList"
    names = {item["metadata"]["name"] for item in listed["items"]}
    assert names >= {"default", "kube-system", "kube-public", "kube-node-lease"}


def test_api_resources_are_discovered(kubectl: Kubectl) -> None:
    output = {(row[0], row[-1]) for row in rows(kubectl("api-resources"))}
    assert output >= {("pods", "Pod"), ("leases", "Lease"), ("pods", "PodMetrics")}
    versions = ["coordination.k8s.io/v1", "metrics.k8s.io/v1beta1", "v1"]
    assert kubectl("api-versions").split() == versions


def test_version_and_explain(kubectl: Kubectl) -> None:
    output = json.loads(kubectl.run("version", "-o", "json").out)
    assert output["serverVersion"]["gitVersion"].endswith("+podstatus")
    assert "imagePullPolicy" in kubectl("explain", "pod.spec.containers")


def test_a_wrong_token_is_turned_away(kubectl: Kubectl) -> None:
    ran = kubectl.run("--token=wrong", "get", "pods")
    assert ran.code == 1
    assert "Unauthorized" in ran.errors or "logged in" in ran.errors
