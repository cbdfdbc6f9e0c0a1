"""The choice of a node, as a table and through the server."""

import pytest

from podstatus.apiserver.controllers.decide.scheduling import (
    ScheduleResult,
    node_info,
    pod_request,
    schedule_pod,
)
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from tests.apiserver.controllers.documents import NOT_READY, Document, node, pod

DEDICATED = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}


def with_condition(node: Document, kind: str) -> Document:
    conditions = [*node["status"]["conditions"], {"type": kind, "status": "True"}]
    return node | {"status": node["status"] | {"conditions": conditions}}


def requiring(*terms: Document) -> Document:
    required = {"nodeSelectorTerms": list(terms)}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return pod(affinity={"nodeAffinity": {key: required}})


def expression(key: str, operator: str, *values: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, value: str) -> Document:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [value]}]}


def tolerating(**toleration: str) -> Document:
    return pod(tolerations=[toleration])


def chosen(
    waiting: Document, *nodes: Document, load: dict[str, int] | None = None
) -> ScheduleResult:
    rooms = [node_info(from_document(document, Node)) for document in nodes]
    loads = {"n1": load or {}}
    return schedule_pod(pod_request(from_document(waiting, Pod)), rooms, loads)


TAINTED = node(taints=[NOT_READY, DEDICATED])
FITS: list[tuple[Document, Document]] = [
    (pod(), node()),
    (pod({"cpu": "2", "memory": "1Gi"}), node()),
    (pod({"example.com/gpu": "0"}), node()),
    (pod(nodeSelector={"disk": "ssd"}), node()),
    (requiring(expression("disk", "In", "hdd", "ssd")), node()),
    (requiring(expression("disk", "NotIn", "hdd")), node()),
    (requiring(expression("zone", "NotIn", "a")), node()),
    (requiring(expression("disk", "Exists")), node()),
    (requiring(expression("zone", "DoesNotExist")), node()),
    (requiring(expression("cores", "Gt", "7")), node()),
    (requiring(expression("cores", "Lt", "9")), node()),
    (requiring(expression("zone", "Exists"), field("In", "n1")), node()),
    (tolerating(key="dedicated", value="db", effect="NoSchedule"), TAINTED),
    (tolerating(key="dedicated", operator="Exists"), TAINTED),
    (tolerating(operator="Exists"), TAINTED),
    (pod(), node(taints=[DEDICATED | {"effect": "PreferNoSchedule"}])),
    (
        tolerating(key="node.kubernetes.io/unschedulable", operator="Exists"),
        node(unschedulable=True),
    ),
]


@pytest.mark.parametrize(("waiting", "where"), FITS)
def test_a_pod_goes_where_it_fits(waiting: Document, where: Document) -> None:
    assert chosen(waiting, where) == ScheduleResult(node="n1")


UNWANTED = "node(s) didn't match Pod's node affinity/selector"
MISFITS: list[tuple[Document, str]] = [
    (pod({"cpu": "2001m"}), "Insufficient cpu"),
    (pod({"memory": "2Gi"}), "Insufficient memory"),
    (pod({"example.com/gpu": "1"}), "Insufficient example.com/gpu"),
    (pod(nodeSelector={"disk": "hdd"}), UNWANTED),
    (requiring(expression("disk", "In", "hdd")), UNWANTED),
    (requiring(expression("disk", "NotIn", "ssd")), UNWANTED),
    (requiring(expression("cores", "Gt", "8")), UNWANTED),
    (requiring(expression("disk", "Gt", "1")), UNWANTED),
    (requiring(expression("disk", "Near", "1")), UNWANTED),
    (requiring(field("NotIn", "n1")), UNWANTED),
    (requiring({}), UNWANTED),
    (requiring(), UNWANTED),
    (requiring(expression("disk", "Exists") | field("In", "n2")), UNWANTED),
]


@pytest.mark.parametrize(("waiting", "why"), MISFITS)
def test_a_pod_that_fits_nowhere_has_a_message(waiting: Document, why: str) -> None:
    assert chosen(waiting, node()) == ScheduleResult(message=f"0/1 nodes are available: 1 {why}.")


UNTOLERATED = "node(s) had untolerated taint(s)"
CLOSED = [
    (node(unschedulable=True), "node(s) were unschedulable"),
    (TAINTED, UNTOLERATED),
    (node(taints=[DEDICATED | {"effect": "NoExecute"}]), UNTOLERATED),
    (with_condition(node(), "DiskPressure"), UNTOLERATED),
]


@pytest.mark.parametrize(("where", "why"), CLOSED)
def test_a_pod_that_no_node_accepts_has_a_message(where: Document, why: str) -> None:
    waiting = tolerating(key="dedicated", value="web")
    assert chosen(waiting, where) == ScheduleResult(message=f"0/1 nodes are available: 1 {why}.")


def test_a_taint_counts_no_longer_than_its_condition() -> None:
    pressed = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    assert chosen(pod(), node(taints=[NOT_READY, pressed])) == ScheduleResult(node="n1")


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_pod_waits_in_silence_while_no_node_is_ready(ready: str) -> None:
    assert chosen(pod(), node(ready=ready), node("n2", ready=ready)) == ScheduleResult()
    assert chosen(pod()) == ScheduleResult()


def test_the_first_node_by_name_that_fits_is_chosen() -> None:
    nodes = [node("n3"), node("n2"), node("n1", unschedulable=True)]
    assert chosen(pod(), *nodes) == ScheduleResult(node="n2")


def test_what_others_take_is_not_there() -> None:
    load = {"pods": 10**9, "cpu": 15 * 10**8}
    assert chosen(pod({"cpu": "500m"}), node(), load=load).node == "n1"
    assert chosen(pod({"cpu": "501m"}), node(), load=load).node == ""
    full = chosen(pod({"cpu": "1"}), node(), load=load | {"pods": 2 * 10**9})
    assert full.message == "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods."


def test_reasons_are_counted_over_the_nodes() -> None:
    nodes = [node("n1"), node("n2"), node("n3", ready="False")]
    assert chosen(pod({"cpu": "3"}), *nodes).message == (
        "0/3 nodes are available: 1 node(s) were not ready, 2 Insufficient cpu."
    )
