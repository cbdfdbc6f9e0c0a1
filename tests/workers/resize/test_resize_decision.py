"""Resize decisions, and the order of pending resizes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.containers import Container, ContainerResizePolicy, ResourceRequirements
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.testing.builders import make_pod
from podstatus.workers.admission.resource_fit import sum_requests
from podstatus.workers.resize.decision import (
    ResizeAccepted,
    ResizeDecision,
    ResizePending,
    ResizeRequest,
    decide_resize,
    sort_pending_resizes,
)


def resources(
    cpu: str = "1", memory: str = "1Gi", *, guaranteed: bool = False
) -> ResourceRequirements:
    amounts = {"cpu": Quantity(cpu), "memory": Quantity(memory)}
    return ResourceRequirements(requests=amounts, limits=amounts if guaranteed else None)


def a_pod(
    name: str = "p",
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    policy: str = "",
    priority: int | None = None,
) -> Pod:
    """A pod of one container with these requests."""
    rule = ContainerResizePolicy(resource_name=policy, restart_policy="RestartContainer")
    container = Container(
        name="a", resources=resources(cpu, memory), resize_policy=(rule,) if policy else None
    )
    pod = make_pod(name, uid=f"uid-{name}")
    return structs.replace(
        pod, spec=structs.replace(pod.spec, containers=(container,), priority=priority)
    )


def a_node(cpu: str = "4", memory: str = "8Gi") -> Node:
    node = Node()
    allocatable = {"cpu": Quantity(cpu), "memory": Quantity(memory)}
    return structs.replace(node, status=structs.replace(node.status, allocatable=allocatable))


def decided(
    pod: Pod, *others: Pod, granted: Pod | None = None, resizes: bool = True
) -> ResizeDecision:
    return decide_resize(
        pod,
        granted or a_pod(),
        node=a_node(),
        others=sum_requests(other.spec for other in others),
        max_pods=110,
        supports_resize=resizes,
    )


@pytest.mark.parametrize(
    ("pod", "others", "reason", "message"),
    [
        (a_pod(cpu="3"), ["1"], "", ""),
        (a_pod(cpu="3001m"), ["1"], "OutOfcpu", "cpu, requested: 3001, used: 1000, capacity: 4000"),
        (a_pod(cpu="5"), [], "OutOfcpu", "cpu, requested: 5000, used: 0, capacity: 4000"),
        (
            a_pod(cpu="5", memory="9Gi"),
            [],
            "OutOfcpu",
            "cpu, requested: 5000, used: 0, capacity: 4000",
        ),
        (
            a_pod(memory="8Gi"),
            ["1"],
            "OutOfmemory",
            "memory, requested: 8589934592, used: 1073741824, capacity: 8589934592",
        ),
        (a_pod(cpu="500m"), ["1", "2"], "", ""),
    ],
)
def test_what_fits_beside_the_others_is_granted(
    pod: Pod, others: list[str], reason: str, message: str
) -> None:
    decision = decided(pod, *(a_pod(f"o{i}", cpu=cpu) for i, cpu in enumerate(others)))
    if reason:
        message = f"Node didn't have enough resource: {message}"
        assert decision == ResizePending(reason=reason, message=message)
    else:
        assert decision == ResizeAccepted()


def test_a_runtime_that_cannot_resize_never_will() -> None:
    decision = decided(a_pod(cpu="2"), resizes=False)
    assert isinstance(decision, ResizePending)
    assert decision.reason == "Infeasible"
    assert "container a cannot be resized by a restart" in decision.message


def test_a_runtime_that_cannot_resize_can_start_again() -> None:
    pod, granted = a_pod(cpu="2", policy="cpu"), a_pod(policy="cpu")
    assert decided(pod, granted=granted, resizes=False) == ResizeAccepted()
    pod = a_pod(memory="2Gi", policy="cpu")
    decision = decided(pod, granted=granted, resizes=False)
    assert isinstance(decision, ResizePending)
    assert decision.reason == "Infeasible"


def test_a_runtime_that_cannot_resize_cannot_resize_a_pod_as_a_whole() -> None:
    pod = a_pod(policy="cpu")
    pod = structs.replace(pod, spec=structs.replace(pod.spec, resources=resources("3")))
    decision = decided(pod, granted=a_pod(policy="cpu"), resizes=False)
    assert isinstance(decision, ResizePending)
    assert decision.reason == "Infeasible"


AMOUNTS = st.integers(1, 6000)


@given(st.lists(AMOUNTS, max_size=5), AMOUNTS, AMOUNTS)
def test_never_more_is_granted_than_the_node_has(others: list[int], has: int, asks: int) -> None:
    pods = [a_pod(f"o{i}", cpu=f"{cpu}m", memory="1") for i, cpu in enumerate(others)]
    pod, granted = (a_pod(cpu=f"{cpu}m", memory="1") for cpu in (asks, has))
    is_accepted = decided(pod, *pods, granted=granted) == ResizeAccepted()
    assert is_accepted == (sum(others) + asks <= 4000)


def waits(
    name: str,
    asks: str = "2",
    *,
    priority: int | None = None,
    since: int | None = None,
    guaranteed: bool = False,
) -> ResizeRequest:
    pod = a_pod(name, cpu=asks, priority=priority)
    (container,) = pod.spec.containers or ()
    container = structs.replace(container, resources=resources(asks, guaranteed=guaranteed))
    pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))
    began = None if since is None else Time.from_unix_nanos(since)
    return ResizeRequest(pod=pod, allocated=a_pod(name), since=began)


def test_who_is_asked_first() -> None:
    order = [
        waits("gives-back", "500m"),
        waits("important", priority=10),
        waits("guaranteed", guaranteed=True, since=9),
        waits("longest", since=1),
        waits("longer", since=2),
        waits("new"),
        waits("unimportant", priority=-1, since=0, guaranteed=True),
    ]
    names = [one.pod.uid for one in order]
    for seed in range(20):
        mixed = random.Random(seed).sample(order, len(order))
        assert sort_pending_resizes(mixed) == names


def test_no_pending_resizes() -> None:
    expected: list[PodUID] = []
    assert sort_pending_resizes([]) == expected
