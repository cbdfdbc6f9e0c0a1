from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod_status import (
    NodeAllocatableResourceClaimStatus,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodStatus,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.normalize_and_compare import is_pod_status_by_kubelet_equal
from podstatus.testing.builders import make_status, running

READY = PodCondition(type="Ready", status="True", reason="Why", message="Well")
BASE = structs.replace(make_status("Running", running("a"), running("b")), conditions=(READY,))
LATER = Time.parse("2024-06-01T00:00:00Z")


def equal(old: PodStatus, new: PodStatus, gates: FeatureGates | None = None) -> bool:
    return is_pod_status_by_kubelet_equal(old, new, gates or FeatureGates())


def with_conditions(*conditions: PodCondition) -> PodStatus:
    return structs.replace(BASE, conditions=conditions)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"last_transition_time": LATER}, id="transition time"),
        pytest.param({"last_probe_time": LATER}, id="probe time"),
        pytest.param({"observed_generation": 7}, id="observed generation"),
    ],
)
def test_surprise_25_times_and_generations_of_conditions_do_not_count(
    changes: dict[str, Any],
) -> None:
    assert equal(BASE, with_conditions(structs.replace(READY, **changes)))


@pytest.mark.parametrize("field", ["status", "reason", "message"])
def test_what_a_condition_of_ours_says_counts(field: str) -> None:
    assert not equal(BASE, with_conditions(structs.replace(READY, **{field: "Other"})))


def test_surprise_25_the_observed_generation_of_the_status_counts() -> None:
    assert not equal(BASE, structs.replace(BASE, observed_generation=7))


def test_surprise_25_the_order_of_containers_counts() -> None:
    assert BASE.container_statuses is not None
    turned = structs.replace(BASE, container_statuses=BASE.container_statuses[::-1])
    assert not equal(BASE, turned)


def test_the_order_of_conditions_does_not_count() -> None:
    other = PodCondition(type="Initialized", status="True")
    assert equal(with_conditions(READY, other), with_conditions(other, READY))


def test_a_condition_of_ours_that_comes_or_goes_counts() -> None:
    more = with_conditions(READY, PodCondition(type="Initialized", status="True"))
    assert not equal(BASE, more)
    assert not equal(more, BASE)


def test_the_shared_disruption_target_counts() -> None:
    assert not equal(
        BASE, with_conditions(READY, PodCondition(type="DisruptionTarget", status="True"))
    )


def test_foreign_conditions_do_not_count() -> None:
    foreign = PodCondition(type="example.com/gate", status="True")
    assert equal(BASE, with_conditions(foreign, READY))


def test_a_gated_condition_does_not_count_while_its_gate_is_off() -> None:
    gated = with_conditions(READY, PodCondition(type="PodReadyToStartContainers", status="True"))
    assert not equal(BASE, gated)
    gates = FeatureGates(pod_ready_to_start_containers_condition=False)
    assert equal(BASE, gated, gates)


def test_of_several_conditions_of_one_type_the_last_counts() -> None:
    twin = structs.replace(READY, status="False")
    assert equal(BASE, with_conditions(twin, READY))
    assert not equal(BASE, with_conditions(READY, twin))


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_claim_statuses": (PodResourceClaimStatus(name="claim"),)},
        {"extended_resource_claim_status": PodExtendedResourceClaimStatus()},
        {"node_allocatable_resource_claim_statuses": (NodeAllocatableResourceClaimStatus(),)},
    ],
)
def test_claim_statuses_belong_to_others_and_do_not_count(changes: dict[str, Any]) -> None:
    assert equal(BASE, structs.replace(BASE, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "Failed"},
        {"reason": "Evicted"},
        {"pod_ip": "10.0.0.1"},
        {"start_time": LATER},
        {"qos_class": "Burstable"},
        {"allocated_resources": {"cpu": Quantity("1")}},
        {"container_statuses": (running("a"),)},
        {"container_statuses": (running("a"), running("b", ready=False))},
    ],
)
def test_everything_else_counts(changes: dict[str, Any]) -> None:
    assert not equal(BASE, structs.replace(BASE, **changes))


def test_amounts_are_compared_by_value_and_nil_is_like_empty() -> None:
    old = structs.replace(
        BASE, allocated_resources={"cpu": Quantity("1")}, init_container_statuses=None
    )
    new = structs.replace(
        BASE, allocated_resources={"cpu": Quantity("1000m")}, init_container_statuses=()
    )
    assert equal(old, new)
