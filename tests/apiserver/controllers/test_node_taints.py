"""Nodes get the taints that their conditions demand, if the server runs its controllers."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.apiserver.controllers.decide.node_taints import desired_taints
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from podstatus.kube.scalars.time import Time
from podstatus.testing.apiserver import ApiServerThread, running_api_server

Document = dict[str, Any]
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
NOW = Time.parse("2026-11-15T10:00:00Z")
PREFIX = "node.kubernetes.io/"
KEYS = [
    "not-ready", "unreachable", "unschedulable", "memory-pressure", "disk-pressure",
    "network-unavailable", "pid-pressure",
]  # fmt: skip
TYPES = ["Ready", "MemoryPressure", "DiskPressure", "NetworkUnavailable", "PIDPressure", "Own"]


def node(taints: str = "", *, unschedulable: bool = False, **conditions: str) -> Node:
    """A node; taints as `key:Effect`, those of Kubernetes without their prefix."""
    return Node(
        spec=NodeSpec(
            taints=tuple(taint(text) for text in taints.split()) or None,
            unschedulable=unschedulable,
        ),
        status=NodeStatus(
            conditions=tuple(NodeCondition(type=t, status=s) for t, s in conditions.items())
        ),
    )


def taint(text: str) -> Taint:
    key, _, effect = text.partition(":")
    return Taint(key=PREFIX + key if key in KEYS else key, effect=effect or "NoSchedule")


def settled(node: Node) -> list[str]:
    return [f"{t.key.removeprefix(PREFIX)}:{t.effect}" for t in desired_taints(node, NOW)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (node("not-ready", Ready="True"), []),
        (node("not-ready", Ready="False"), ["not-ready:NoSchedule"]),
        (node(Ready="False"), ["not-ready:NoSchedule"]),
        (node("not-ready", Ready="Unknown"), ["unreachable:NoSchedule"]),
        (node("unreachable", Ready="False"), ["not-ready:NoSchedule"]),
        (node("not-ready"), ["not-ready:NoSchedule"]),
        (node(), ["not-ready:NoSchedule"]),
        (node(Ready="True", MemoryPressure="True"), ["memory-pressure:NoSchedule"]),
        (node(Ready="True", DiskPressure="True"), ["disk-pressure:NoSchedule"]),
        (node(Ready="True", PIDPressure="True"), ["pid-pressure:NoSchedule"]),
        (node(Ready="True", NetworkUnavailable="True"), ["network-unavailable:NoSchedule"]),
        (node("memory-pressure", Ready="True", MemoryPressure="False"), []),
        (node("disk-pressure", Ready="True", DiskPressure="Unknown"), []),
        (node("pid-pressure", Ready="True"), []),
        (node(Ready="True", unschedulable=True), ["unschedulable:NoSchedule"]),
        (node("unschedulable", Ready="True"), []),
        (
            node("dedicated not-ready not-ready:NoExecute dedicated:NoExecute", Ready="True"),
            ["dedicated:NoSchedule", "not-ready:NoExecute", "dedicated:NoExecute"],
        ),
        (
            node("dedicated", Ready="False", DiskPressure="True", unschedulable=True),
            [
                "dedicated:NoSchedule",
                "not-ready:NoSchedule",
                "disk-pressure:NoSchedule",
                "unschedulable:NoSchedule",
            ],
        ),
    ],
)
def test_a_node_is_tainted_by_its_conditions(before: Node, after: list[str]) -> None:
    assert settled(before) == after


def test_a_new_taint_has_its_time_and_an_old_one_keeps_its_own() -> None:
    tainted = node("not-ready", Ready="False", DiskPressure="True")
    assert [taint.time_added for taint in desired_taints(tainted, NOW)] == [None, NOW]


TAINTS = st.builds(
    Taint,
    key=st.sampled_from([*(PREFIX + key for key in KEYS), "dedicated"]),
    effect=st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute", ""]),
)
NODE = st.builds(
    Node,
    spec=st.builds(
        NodeSpec,
        taints=st.none() | st.lists(TAINTS, max_size=5).map(tuple),
        unschedulable=st.booleans(),
    ),
    status=st.builds(
        NodeStatus,
        conditions=st.lists(
            st.builds(
                NodeCondition,
                type=st.sampled_from(TYPES),
                status=st.sampled_from(["True", "False", "Unknown", "Perhaps"]),
            ),
            max_size=6,
        ).map(tuple),
    ),
)


@given(NODE)
def test_settled_taints_stay_as_they_are_and_others_are_not_touched(before: Node) -> None:
    taints = desired_taints(before, NOW)
    after = structs.replace(before, spec=structs.replace(before.spec, taints=taints))
    assert desired_taints(after) == taints
    assert theirs(taints) == theirs(before.spec.taints or ())


def theirs(taints: tuple[Taint, ...]) -> list[Taint]:
    return [t for t in taints if t.effect != "NoSchedule" or not t.key.startswith(PREFIX)]


def create_node(server: ApiServerThread, ready: str) -> None:
    conditions = [{"type": "Ready", "status": ready}]
    document = {"metadata": {"name": "n1"}, "status": {"conditions": conditions}}
    document |= {"apiVersion": "v1", "kind": "Node"}
    assert server.request("POST", NODES, document)[0] == 201


def say_ready(server: ApiServerThread, status: str) -> None:
    change = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    code, answered = server.request("PATCH", f"{NODES}/n1/status", change, MERGE)
    assert code == 200, answered


def keys_of(document: Document) -> list[str]:
    taints = from_document(document, Node).spec.taints or ()
    return [taint.key.removeprefix(PREFIX) for taint in taints]


def wait_for(server: ApiServerThread, is_so: Callable[[Document], bool]) -> Document:
    """Return the node once the predicate holds; by a watch, without polling."""
    with closing(server.connect()) as connection:
        headers = {"Authorization": f"Bearer {server.token}"}
        connection.request("GET", f"{NODES}?watch=1", headers=headers)
        response = connection.getresponse()
        while True:
            current: Document = json.loads(response.readline())["object"]
            if is_so(current):
                return current


def test_a_node_loses_the_taint_it_was_born_with_when_it_is_ready(tmp_path: Path) -> None:
    with running_api_server(tmp_path, schedule=True) as server:
        create_node(server, "False")
        assert keys_of(server.get_object("nodes", "n1") or {}) == ["not-ready"]
        say_ready(server, "True")
        ready = wait_for(server, lambda node: keys_of(node) == [])
        assert "taints" not in ready["spec"]
        say_ready(server, "False")
        again = wait_for(server, lambda node: keys_of(node) == ["not-ready"])
        assert again["spec"]["taints"][0]["timeAdded"]
        say_ready(server, "Unknown")
        wait_for(server, lambda node: keys_of(node) == ["unreachable"])


def test_a_node_that_is_as_it_should_be_is_not_written_again(tmp_path: Path) -> None:
    with running_api_server(tmp_path, schedule=True) as server:
        create_node(server, "True")
        settled = wait_for(server, lambda node: keys_of(node) == [])
        cordoned = {"spec": {"unschedulable": True}}
        code, answered = server.request("PATCH", f"{NODES}/n1", cordoned, MERGE)
        assert code == 200, answered
        after = wait_for(server, lambda node: keys_of(node) == ["unschedulable"])
        # The patch is one write, the taint another.
        assert int(version(after)) == int(version(settled)) + 2
        say_ready(server, "True")
        assert server.get_object("nodes", "n1") == after


def version(document: Document) -> str:
    version: str = document["metadata"]["resourceVersion"]
    return version


def test_a_concurrent_change_of_another_writer_is_not_lost(tmp_path: Path) -> None:
    with running_api_server(tmp_path, schedule=True) as server:
        create_node(server, "False")
        for number in range(20):
            say_ready(server, "True" if number % 2 else "False")
            label = {"metadata": {"labels": {f"l{number}": "yes"}}}
            assert server.request("PATCH", f"{NODES}/n1", label, MERGE)[0] == 200
        after = wait_for(server, lambda node: keys_of(node) == [])
        assert len(after["metadata"]["labels"]) == 20


def test_nodes_are_looked_at_again_after_a_restart(tmp_path: Path) -> None:
    with running_api_server(tmp_path, durable=True) as server:
        create_node(server, "True")
        assert keys_of(server.get_object("nodes", "n1") or {}) == ["not-ready"]
    with running_api_server(tmp_path, durable=True, schedule=True) as server:
        wait_for(server, lambda node: keys_of(node) == [])


def test_a_server_that_plays_no_controllers_leaves_nodes_alone(tmp_path: Path) -> None:
    with running_api_server(tmp_path) as server:
        create_node(server, "False")
        say_ready(server, "True")
        assert keys_of(server.get_object("nodes", "n1") or {}) == ["not-ready"]
