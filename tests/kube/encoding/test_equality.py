from typing import Any

import pytest

from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time


def amounts(**amount: str) -> dict[str, Quantity]:
    return {name: Quantity(text) for name, text in amount.items()}


def container(**fields: Any) -> PodStatus:
    return PodStatus(container_statuses=(ContainerStatus(name="app", **fields),))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(PodStatus(conditions=None), PodStatus(conditions=()), id="nil list"),
        pytest.param(
            PodStatus(allocated_resources=None), PodStatus(allocated_resources={}), id="nil map"
        ),
        pytest.param(
            PodStatus(allocated_resources=amounts(cpu="1")),
            PodStatus(allocated_resources=amounts(cpu="1000m")),
            id="another spelling of an amount",
        ),
        pytest.param(
            container(resources=ResourceRequirements(limits=amounts(memory="1024Ki"))),
            container(resources=ResourceRequirements(limits=amounts(memory="1Mi"), requests={})),
            id="deep inside",
        ),
        pytest.param(
            PodStatus(start_time=Time.parse("2024-01-01T00:00:00Z")),
            PodStatus(start_time=Time.parse("2024-01-01T02:00:00+02:00")),
            id="one instant in two zones",
        ),
    ],
)
def test_what_means_the_same_is_equal(left: PodStatus, right: PodStatus) -> None:
    assert left != right or left.start_time
    assert semantic_equal(left, right)
    assert semantic_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(PodStatus(phase="Running"), PodStatus(phase="Pending"), id="text"),
        pytest.param(PodStatus(), PodStatus(resources=ResourceRequirements()), id="nil pointer"),
        pytest.param(container(started=None), container(started=False), id="nil bool"),
        pytest.param(PodStatus(), PodStatus(conditions=(PodCondition(),)), id="length"),
        pytest.param(
            PodStatus(conditions=(PodCondition(type="A"), PodCondition(type="B"))),
            PodStatus(conditions=(PodCondition(type="B"), PodCondition(type="A"))),
            id="order",
        ),
        pytest.param(
            PodStatus(allocated_resources=amounts(cpu="1")),
            PodStatus(allocated_resources=amounts(cpu="1001m")),
            id="amount",
        ),
        pytest.param(
            PodStatus(allocated_resources=amounts(cpu="1")),
            PodStatus(allocated_resources=amounts(memory="1")),
            id="key",
        ),
        pytest.param(
            PodStatus(allocated_resources=amounts(cpu="1")),
            PodStatus(allocated_resources=amounts(cpu="1", memory="0")),
            id="more keys",
        ),
        pytest.param(
            PodStatus(start_time=Time.parse("2024-01-01T00:00:00Z")),
            PodStatus(start_time=Time.parse("2024-01-01T00:00:00.000000001Z")),
            id="a nanosecond",
        ),
    ],
)
def test_what_means_something_else_is_not_equal(left: PodStatus, right: PodStatus) -> None:
    assert not semantic_equal(left, right)
    assert not semantic_equal(right, left)


def test_values_of_different_types_are_not_equal() -> None:
    assert not semantic_equal(PodCondition(type="A"), ContainerStatus(name="A"))
