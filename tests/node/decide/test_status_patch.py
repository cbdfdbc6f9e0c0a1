"""The status patch of a changed node."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.node import Node, NodeAddress, NodeCondition, NodeStatus
from podstatus.kube.patch import NODE, apply_patch
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.status_patch import has_changed, status_patch
from podstatus.node.machine.node_addresses import node_addresses
from podstatus.node.settings import NodeSettings
from tests.node.scene import NodeScene

LATER = Time.parse("2100-01-01T01:00:00Z")


def own_node() -> Node:
    """The node as stored by the server."""
    scene = NodeScene()
    return scene.server.put_node(scene.own_node.current())


def with_status(node: Node, **changes: Any) -> Node:
    return structs.replace(node, status=structs.replace(node.status, **changes))


def heard_of(node: Node) -> Node:
    conditions = [
        structs.replace(it, last_heartbeat_time=LATER) for it in node.status.conditions or ()
    ]
    return with_status(node, conditions=tuple(conditions))


def applied(old: Node, patch: bytes) -> Node:
    return from_document(apply_patch(to_document(old), json.loads(patch), NODE), Node)


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, False),
        ({"addresses": ()}, True),
        ({"capacity": {"cpu": Quantity("3")}}, True),
        ({"conditions": ()}, True),
        ({"images": ()}, False),
    ],
)
def test_a_change_is_anything_but_a_heartbeat(changes: dict[str, Any], changed: bool) -> None:
    node = own_node()
    assert has_changed(node, heard_of(with_status(node, **changes))) == changed


def test_the_order_of_conditions_and_the_spelling_of_amounts_are_no_change() -> None:
    node = own_node()
    conditions = tuple(reversed(node.status.conditions or ()))
    capacity = (node.status.capacity or {}) | {"cpu": Quantity("2000m")}
    assert not has_changed(node, with_status(node, conditions=conditions, capacity=capacity))


def test_a_label_is_a_change() -> None:
    node = own_node()
    metadata = structs.replace(node.metadata, labels={"kubernetes.io/os": "linux"})
    assert has_changed(node, structs.replace(node, metadata=metadata))


def test_a_heartbeat_sends_the_times_and_which_node_is_meant() -> None:
    node = own_node()
    patch = json.loads(status_patch(node, heard_of(node)))
    assert patch["metadata"] == {"uid": node.metadata.uid}
    assert set(patch["status"]) == {"$setElementOrder/conditions", "conditions"}
    assert patch["status"]["conditions"][0] == {
        "type": "MemoryPressure",
        "lastHeartbeatTime": "2100-01-01T01:00:00Z",
    }


def test_a_condition_that_came_meanwhile_survives() -> None:
    node = own_node()
    foreign = NodeCondition(type="KernelDeadlock", status="False")
    stored = with_status(node, conditions=(*(node.status.conditions or ()), foreign))
    after = applied(stored, status_patch(node, heard_of(node)))
    assert foreign in (after.status.conditions or ())
    assert len(after.status.conditions or ()) == 5


def test_the_spec_is_never_sent() -> None:
    node = own_node()
    spec = structs.replace(node.spec, unschedulable=True)
    assert "spec" not in json.loads(status_patch(node, structs.replace(node, spec=spec)))


ADDRESSES = st.lists(
    st.builds(
        NodeAddress,
        type=st.sampled_from(["InternalIP", "Hostname"]),
        address=st.sampled_from(["10.0.0.7", "fd00::7", "node-c"]),
    ),
    max_size=4,
    unique=True,
).map(tuple)


@given(ADDRESSES, ADDRESSES)
def test_addresses_become_what_they_should_be_although_types_are_not_unique(
    old: tuple[NodeAddress, ...], new: tuple[NodeAddress, ...]
) -> None:
    before = Node(status=NodeStatus(addresses=old or None))
    after = Node(status=NodeStatus(addresses=new or None))
    stored = applied(before, status_patch(before, after)).status.addresses or ()
    # Servers merge addresses of one type.
    assert sorted(stored, key=repr) == sorted(new, key=repr)


@pytest.mark.parametrize("before", [None, (NodeAddress(type="InternalIP", address="10.0.0.9"),)])
def test_addresses_keep_the_order_in_which_we_tell_them(
    before: tuple[NodeAddress, ...] | None,
) -> None:
    settings = NodeSettings(name="n", node_ips=("10.0.0.7", "fd00::7"))
    old = Node(status=NodeStatus(addresses=before))
    new = Node(status=NodeStatus(addresses=node_addresses(settings)))
    assert applied(old, status_patch(old, new)) == new
