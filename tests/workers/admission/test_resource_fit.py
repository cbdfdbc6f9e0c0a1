"""Whether a pod fits next to the other pods."""

from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.workers.admission.resource_fit import (
    insufficient_resources,
    is_extended_resource,
    pod_capacity,
    sum_requests,
)

HUGE = "hugepages-2Mi"
GPU = "example.com/gpu"


def spec(**fields: Any) -> PodSpec:
    return from_document(fields, PodSpec)


def one(**requests: str) -> PodSpec:
    return spec(containers=[using(**requests)])


def using(name: str = "a", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {_dashed(k): v for k, v in requests.items()}}}


def _dashed(name: str) -> str:
    return {"gpu": GPU, "storage": "ephemeral-storage", "huge": HUGE}.get(name, name)


def missing(pod: PodSpec, *others: PodSpec, **allocatable: str) -> list[tuple[str, int, int, int]]:
    resources = {_dashed(name): amount for name, amount in allocatable.items()}
    node = from_document({"status": {"allocatable": resources}}, Node)
    found = insufficient_resources(pod, node=node, others=sum_requests(others), max_pods=110)
    return [(s.resource, s.requested, s.used, s.capacity) for s in found]


def test_a_node_says_how_many_pods_it_takes_and_otherwise_the_settings_do() -> None:
    node = from_document({"status": {"allocatable": {"pods": "7"}}}, Node)
    assert pod_capacity(node, 110) == 7
    assert pod_capacity(Node(), 110) == 110


def test_cpu_counts_in_thousandths_and_the_rest_in_whole_units() -> None:
    assert missing(one(cpu="1500m", memory="1Gi"), cpu="1", memory="1Mi") == [
        ("cpu", 1500, 0, 1000),
        ("memory", 2**30, 0, 2**20),
    ]


def test_parts_of_a_unit_round_up() -> None:
    assert missing(one(cpu="100u", memory="1500m"), cpu="0", memory="1") == [
        ("cpu", 1, 0, 0),
        ("memory", 2, 0, 1),
    ]


def test_exactly_what_is_left_fits() -> None:
    assert missing(one(cpu="1"), one(cpu="500m"), one(cpu="500m"), cpu="2") == []
    assert missing(one(cpu="1001m"), one(cpu="1"), cpu="2") == [("cpu", 1001, 1000, 2000)]


def test_shortages_come_in_a_fixed_order() -> None:
    pod = one(huge="2Mi", gpu="1", storage="1", memory="1", cpu="1")
    found = missing(pod, cpu="0", memory="0", storage="0", gpu="0", huge="0")
    assert [row[0] for row in found] == ["cpu", "memory", "ephemeral-storage", GPU, HUGE]


def test_a_node_that_says_nothing_has_nothing() -> None:
    assert missing(one(cpu="1")) == [("cpu", 1000, 0, 0)]
    assert missing(one(huge="2Mi")) == [(HUGE, 2 * 2**20, 0, 0)]


def test_asking_for_nothing_fits_even_where_too_much_was_given() -> None:
    assert missing(one(cpu="0"), one(cpu="4"), cpu="2") == []


@pytest.mark.parametrize(
    ("what", "pod", "expected"),
    [
        ("unknown to the node", one(gpu="1"), []),
        ("limits are not asked for", spec(containers=[{"resources": {"limits": {GPU: "1"}}}]), []),
    ],
)
def test_an_extended_resource_that_the_node_does_not_know_is_left_to_others(
    what: str, pod: PodSpec, expected: list[tuple[str, int, int, int]]
) -> None:
    assert missing(pod, cpu="1") == expected, what


def test_an_extended_resource_that_ran_out_is_missing() -> None:
    assert missing(one(gpu="1"), gpu="0") == [(GPU, 1, 0, 0)]
    assert missing(one(gpu="2"), one(gpu="1"), gpu="2") == [(GPU, 2, 1, 2)]


SUMS = [
    ("init containers count by the largest", {"initContainers": [using("i", cpu="4")]}, 4000),
    (
        "sidecars add up",
        {"initContainers": [using("s", cpu="4") | {"restartPolicy": "Always"}]},
        5000,
    ),
    ("overhead is added", {"overhead": {"cpu": "250m"}}, 1250),
    ("the pod as a whole speaks for all", {"resources": {"requests": {"cpu": "3"}}}, 3000),
]


@pytest.mark.parametrize(("what", "more", "requested"), SUMS)
def test_what_a_pod_asks_for_as_a_whole(what: str, more: dict[str, Any], requested: int) -> None:
    pod = spec(containers=[using(cpu="1")], **more)
    assert missing(pod, cpu="500m") == [("cpu", requested, 0, 500)], what
    assert missing(one(cpu="1"), pod, cpu="500m") == [("cpu", 1000, requested, 500)], what


@pytest.mark.parametrize("amount", ["9e30", "9E700", "9223372036854775807Ei"])
def test_more_than_can_be_counted_does_not_fit(amount: str) -> None:
    [(resource, requested, _, _)] = missing(one(cpu=amount), cpu="64")
    assert resource == "cpu"
    assert requested > 64_000


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (GPU, True),
        ("cpu", False),
        (HUGE, False),
        ("kubernetes.io/batch-cpu", False),
        ("requests.example.com/gpu", False),
        ("attachable-volumes-aws-ebs", False),
    ],
)
def test_which_resources_are_extended(resource: str, expected: bool) -> None:
    assert is_extended_resource(resource) is expected


def test_names_that_nodes_do_not_hand_out_are_not_looked_at() -> None:
    assert missing(spec(containers=[{"resources": {"requests": {"odd": "1"}}}]), cpu="1") == []
