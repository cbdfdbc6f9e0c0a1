"""The desired Node object."""

import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.node import Node, NodeSpec, NodeStatus, Taint
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.node_object import NodeBuilder, NodeFacts
from podstatus.node.machine.node_addresses import node_addresses
from podstatus.node.settings import NodeSettings
from tests.node.scene import INFO, MACHINE, RESERVED, SETTINGS

FACTS = NodeFacts(
    info=INFO,
    addresses=node_addresses(SETTINGS),
    machine=MACHINE,
    now=Time.parse("2024-01-31T09:30:00Z"),
)
RESIZE_FEATURES = [
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
]
TAINT = Taint(key="podstatus.dev/process", effect="NoExecute")


def descriptor(settings: NodeSettings = SETTINGS) -> NodeBuilder:
    return NodeBuilder(settings, lambda _: RESERVED)


def test_a_new_node_shows_what_it_is() -> None:
    node = to_document(descriptor().new_node(FACTS).node)
    assert (node["kind"], node["apiVersion"]) == ("Node", "v1")
    assert node["metadata"] == {
        "name": "node-c",
        "labels": {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": "node-c",
            "kubernetes.io/os": "linux",
        },
    }
    status = node["status"]
    assert status["capacity"] == {
        "cpu": "2",
        "memory": "8Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    assert status["allocatable"] == {
        "cpu": "2",
        "memory": "8092Mi",
        "ephemeral-storage": "90Gi",
        "pods": "110",
    }
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.7"},
        {"type": "Hostname", "address": "node-c"},
    ]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert status["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.4+podstatus.0.1.0"
    assert [it["type"] for it in status["conditions"]][-1] == "Ready"


@pytest.mark.parametrize(
    ("resizes", "port", "declared"),
    [
        (False, 0, None),
        (False, 10250, ["ExtendWebSocketsToKubelet"]),
        (True, 0, RESIZE_FEATURES),
        (True, 10250, ["ExtendWebSocketsToKubelet", *RESIZE_FEATURES]),
    ],
)
def test_what_an_api_server_has_to_know_is_declared(
    resizes: bool,
    port: int,
    declared: list[str] | None,
) -> None:
    settings = structs.replace(SETTINGS, supports_resize=resizes, port=port)
    status = to_document(descriptor(settings).new_node(FACTS).node)["status"]
    assert status.get("declaredFeatures") == declared
    assert declared is None or declared == sorted(declared)


def test_a_new_node_has_the_labels_annotations_and_taints_that_were_set() -> None:
    settings = structs.replace(
        SETTINGS,
        hostname="host",
        labels={"kubernetes.io/arch": "odd", "example.com/a": "b"},
        annotations={"example.com/c": "d"},
        taints=(TAINT,),
        provider_id="mine://1",
    )
    node = descriptor(settings).new_node(structs.replace(FACTS, info=INFO)).node
    labels = node.metadata.labels or {}
    assert labels["kubernetes.io/hostname"] == "host"
    assert labels["example.com/a"] == "b"
    assert node.metadata.annotations == {"example.com/c": "d"}
    assert node.spec == NodeSpec(taints=(TAINT,), provider_id="mine://1")


def existing(**status: dict[str, Quantity]) -> Node:
    return Node(
        metadata=ObjectMeta(
            name="node-c",
            uid="u",
            labels={"kubernetes.io/hostname": "old", "example.com/a": "theirs"},
        ),
        spec=NodeSpec(taints=(Taint(key="k", effect="NoSchedule"),)),
        status=NodeStatus(**status),  # type: ignore[arg-type]
    )


def test_a_node_that_was_there_keeps_its_labels_and_taints_but_for_ours() -> None:
    settings = structs.replace(SETTINGS, labels={"example.com/a": "ours"}, taints=(TAINT,))
    taken = descriptor(settings).adopted(existing(), FACTS)
    assert taken.metadata.labels == {
        "example.com/a": "theirs",
        "kubernetes.io/hostname": "node-c",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    assert taken.spec == existing().spec
    assert (taken.status.capacity or {})["cpu"] == "2"


def test_a_node_that_was_there_keeps_its_amounts_but_for_huge_pages() -> None:
    amounts = {"hugepages-2Mi": Quantity("4Mi"), "example.com/gpu": Quantity("1")}
    taken = descriptor().adopted(existing(capacity=amounts, allocatable=amounts), FACTS)
    assert taken.status.capacity == {"example.com/gpu": "1"}
    assert taken.status.allocatable == {"example.com/gpu": "1"}


def test_resources_of_others_stay_and_can_be_had() -> None:
    node = existing(capacity={"example.com/gpu": Quantity("1"), "cpu": Quantity("64")})
    status = descriptor().updated(node, FACTS).node.status
    assert (status.capacity or {})["example.com/gpu"] == "1"
    assert (status.allocatable or {})["example.com/gpu"] == "1"
    assert (status.capacity or {})["cpu"] == "2"


def test_what_cannot_be_read_any_more_stays_as_it_was() -> None:
    node = descriptor().new_node(FACTS).node
    hung = structs.replace(FACTS, machine=structs.replace(MACHINE, disk=None))
    after = descriptor().updated(node, hung).node
    assert (after.status.capacity or {})["ephemeral-storage"] == "100Gi"


def test_what_the_runtime_says_about_itself_is_kept_up_to_date() -> None:
    settings = structs.replace(SETTINGS, runtime_labels={"example.com/a": "runtime's"})
    assert (descriptor(settings).new_node(FACTS).node.metadata.labels or {})[
        "example.com/a"
    ] == "runtime's"
    after = descriptor(settings).updated(existing(), FACTS).node
    assert (after.metadata.labels or {})["example.com/a"] == "runtime's"


def test_the_labels_that_say_where_programs_run_are_put_right() -> None:
    after = descriptor().updated(existing(), FACTS).node
    labels = after.metadata.labels or {}
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
    assert labels["kubernetes.io/hostname"] == "old"


@pytest.mark.parametrize(
    ("before", "now", "is_reboot"),
    [
        ("boot-0", "boot-1", True),
        ("boot-1", "boot-1", False),
        ("", "boot-1", False),
        ("boot-0", "", False),
    ],
)
def test_a_new_boot_id_has_an_event(before: str, now: str, is_reboot: bool) -> None:
    node = structs.replace(
        existing(), status=NodeStatus(node_info=structs.replace(INFO, boot_id=before))
    )
    facts = structs.replace(FACTS, info=structs.replace(INFO, boot_id=now))
    events = [it for it in descriptor().updated(node, facts).events if it.warning]
    messages = ["Node node-c has been rebooted, boot id: boot-1"] if is_reboot else []
    assert [it.message for it in events] == messages
    assert [it.reason for it in events] == ["Rebooted"] * is_reboot
