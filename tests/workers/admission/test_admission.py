"""Admission of pods, and the messages of rejections."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.workers.admission.admit import AdmissionRejected, Admitted, admit, rejected_status
from podstatus.workers.admission.resource_fit import RequestedResources, sum_requests

OS_LABEL = "kubernetes.io/os"
AFFINITY = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
TAINT = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


def a_node(
    *,
    cpu: str = "10m",
    memory: str = "20",
    more: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    status: dict[str, Any] | None = None,
) -> Node:
    """A small node, as in upstream's tests."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": "32", **(more or {})}
    document = {
        "metadata": {"name": "machine1", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": allocatable, **(status or {})},
    }
    return from_document(document, Node)


def a_pod(name: str = "p", metadata: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod of this spec."""
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **(metadata or {})}
    return from_document({"metadata": metadata, "spec": spec}, Pod)


def asking(name: str = "p", **requests: str) -> Pod:
    """A pod with one container with these requests."""
    return a_pod(name, containers=[{"name": "a", "resources": {"requests": requests}}])


def outcome(pod: Pod, node: Node, *others: Pod, max_pods: int = 110) -> tuple[str, str] | None:
    """Reason and message of the rejection; None if the pod is admitted."""
    match admit(
        pod, node=node, others=sum_requests(other.spec for other in others), max_pods=max_pods
    ):
        case AdmissionRejected(reason=reason, message=message):
            return reason, message
        case Admitted():
            return None


def short(resource: str, requested: int, used: int, capacity: int) -> tuple[str, str]:
    """A rejection because of a missing resource."""
    return f"OutOf{resource}", (
        f"Node didn't have enough resource: {resource}, requested: {requested}, "
        f"used: {used}, capacity: {capacity}"
    )


STATIC = {"annotations": {"kubernetes.io/config.source": "file"}}
NO_EXECUTE = {"key": "bar", "effect": "NoExecute"}
NO_SCHEDULE = {"key": "foo", "effect": "NoSchedule"}
WANTS_FOO = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "foo", "operator": "Exists"}]}]
        }
    }
}


def on_port(name: str, port: int, **more: Any) -> Pod:
    """A pod with a host port."""
    return a_pod(name, containers=[{"name": "a", "ports": [{"hostPort": port, **more}]}])


# Named as in upstream's TestGeneralPredicates.
GENERAL = [
    ("asks for nothing", a_pod(), a_node(), [asking("o", cpu="9m", memory="19")], None),
    (
        "cpu and memory are short; the first speaks",
        asking(cpu="8m", memory="10"),
        a_node(),
        [asking("o", cpu="5m", memory="19")],
        short("cpu", 8, 5, 10),
    ),
    (
        "memory is short",
        asking(cpu="5m", memory="10"),
        a_node(),
        [asking("o", cpu="5m", memory="19")],
        short("memory", 10, 19, 20),
    ),
    (
        "for another node",
        a_pod(nodeName="machine2"),
        a_node(),
        [],
        ("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"),
    ),
    ("for this node", a_pod(nodeName="machine1"), a_node(), [], None),
    (
        "the port is taken",
        on_port("p", 123),
        a_node(),
        [on_port("o", 123)],
        (
            "NodePorts",
            PORTS,
        ),
    ),
    (
        "taints are tolerated",
        a_pod(tolerations=[{"key": "foo"}, {"key": "bar"}]),
        a_node(taints=[NO_SCHEDULE, NO_EXECUTE]),
        [],
        None,
    ),
    ("NoSchedule is over", a_pod(), a_node(taints=[NO_SCHEDULE]), [], None),
    ("NoExecute", a_pod(), a_node(taints=[NO_EXECUTE]), [], ("TaintToleration", TAINT)),
    (
        "PreferNoSchedule is over",
        a_pod(),
        a_node(taints=[{"key": "baz", "effect": "PreferNoSchedule"}]),
        [],
        None,
    ),
    (
        "static pods bear all taints",
        a_pod(metadata=STATIC),
        a_node(taints=[NO_SCHEDULE, NO_EXECUTE]),
        [],
        None,
    ),
    (
        "affinity, for static pods too",
        a_pod(metadata=STATIC, affinity=WANTS_FOO),
        a_node(),
        [],
        ("NodeAffinity", AFFINITY),
    ),
    ("affinity holds", a_pod(affinity=WANTS_FOO), a_node(labels={"foo": "bar"}), [], None),
    (
        "affinity before node name",
        a_pod(nodeName="other", affinity=WANTS_FOO),
        a_node(),
        [],
        ("NodeAffinity", AFFINITY),
    ),
    (
        "node selector, as in the tour's reject-node-selector",
        a_pod(nodeSelector={"example.com/no-such-label": "x"}),
        a_node(),
        [],
        ("NodeAffinity", AFFINITY),
    ),
    (
        "room before all that",
        a_pod(
            nodeName="other",
            affinity=WANTS_FOO,
            containers=[{"name": "a", "resources": {"requests": {"cpu": "9000"}}}],
        ),
        a_node(cpu="2", taints=[NO_EXECUTE]),
        [],
        short("cpu", 9_000_000, 0, 2000),
    ),
]


@pytest.mark.parametrize(("what", "pod", "node", "others", "expected"), GENERAL)
def test_the_first_objection_speaks(
    what: str, pod: Pod, node: Node, others: list[Pod], expected: tuple[str, str] | None
) -> None:
    assert outcome(pod, node, *others) == expected, what


def test_there_is_room_for_so_many_pods() -> None:
    others = [a_pod(f"o{n}") for n in range(110)]
    assert outcome(a_pod(), a_node(), *others[:109]) is None
    assert outcome(a_pod(), a_node(), *others) == short("pods", 1, 110, 110)


DARWIN = {"nodeInfo": {"operatingSystem": "darwin"}}
SYSTEMS = [
    ("no word", a_pod(), a_node(labels={OS_LABEL: "dummyOS"}), None),
    ("the same", a_pod(metadata={"labels": {OS_LABEL: "linux"}}), a_node(), None),
    (
        "what it runs on, not what its label says",
        a_pod(metadata={"labels": {OS_LABEL: "linux"}}),
        a_node(labels={OS_LABEL: "dummyOS"}, status={"nodeInfo": {"operatingSystem": "linux"}}),
        None,
    ),
    (
        "another by label",
        a_pod(metadata={"labels": {OS_LABEL: "dummyOS"}}),
        a_node(),
        "PodOSSelectorNodeLabelDoesNotMatch",
    ),
    ("the same by field", a_pod(os={"name": "linux"}), a_node(), None),
    ("another by field", a_pod(os={"name": "windows"}), a_node(), "PodOSNotSupported"),
    ("on a Mac", a_pod(os={"name": "linux"}), a_node(status=DARWIN), "PodOSNotSupported"),
    (
        "groups",
        a_pod(securityContext={"supplementalGroupsPolicy": "Strict"}),
        a_node(),
        "SupplementalGroupsPolicyNotSupported",
    ),
    (
        "groups on a node that knows them",
        a_pod(securityContext={"supplementalGroupsPolicy": "Strict"}),
        a_node(status={"features": {"supplementalGroupsPolicy": True}}),
        None,
    ),
    ("merged groups", a_pod(securityContext={"supplementalGroupsPolicy": "Merge"}), a_node(), None),
]


@pytest.mark.parametrize(("what", "pod", "node", "reason"), SYSTEMS)
def test_what_the_node_cannot_do_is_said_first(
    what: str, pod: Pod, node: Node, reason: str | None
) -> None:
    rejected = outcome(pod, node)
    assert (rejected and rejected[0]) == reason, what


def test_a_rejected_pod_has_failed_and_nothing_more_is_said_of_it() -> None:
    pod = asking(cpu="9000")
    rejected = admit(pod, node=a_node(cpu="2"), others=RequestedResources(), max_pods=110)
    assert isinstance(rejected, AdmissionRejected)
    status = rejected_status(pod, rejected)
    assert (status.phase, status.reason, status.qos_class) == ("Failed", "OutOfcpu", "Burstable")
    assert status.message == f"Pod was rejected: {rejected.message}"
    assert (status.conditions, status.container_statuses, status.start_time) == (None, None, None)


amounts = st.sampled_from(["0", "1m", "3m", "7m", "1", "20", "1Ki"])
pods = st.builds(
    lambda name, cpu, memory, port: a_pod(
        name,
        containers=[
            {
                "name": "a",
                "resources": {"requests": {"cpu": cpu, "memory": memory}},
                "ports": [{"hostPort": port}],
            }
        ],
    ),
    st.uuids().map(str),
    amounts,
    amounts,
    st.sampled_from([0, 0, 80, 81]),
)


crowds = st.lists(pods, min_size=1, max_size=6, unique_by=lambda pod: pod.uid)


@given(crowds, st.integers(1, 5), st.data())
def test_a_pod_that_fits_still_fits_when_another_leaves(
    crowd: list[Pod], max_pods: int, data: st.DataObject
) -> None:
    pod, *others = crowd
    stay = data.draw(st.lists(st.booleans(), min_size=len(others), max_size=len(others)))
    fewer = [other for other, stays in zip(others, stay, strict=True) if stays]
    if outcome(pod, a_node(), *others, max_pods=max_pods) is None:
        assert outcome(pod, a_node(), *fewer, max_pods=max_pods) is None


@given(crowds, st.integers(1, 5))
def test_pods_taken_one_after_another_never_ask_for_more_than_there_is(
    arriving: list[Pod], max_pods: int
) -> None:
    taken: list[Pod] = []
    for pod in arriving:
        if outcome(pod, a_node(), *taken, max_pods=max_pods) is None:
            taken.append(pod)
    assert len(taken) <= max_pods
    asked = [(pod.spec.containers or ())[0].resources.requests or {} for pod in taken]
    assert sum(requests["cpu"].milli_value for requests in asked) <= 10
