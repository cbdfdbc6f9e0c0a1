"""The status of a pod that the node terminates."""

import pytest
from msgspec import structs

from podstatus.kube.conditions import find_condition
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.testing.builders import make_pod, make_status
from podstatus.workers.lifecycle.state_machine import Eviction
from podstatus.workers.lifecycle.termination_status import with_eviction

EVICTED = Eviction(reason="Evicted", message="The node was low on resource: memory.")
DISRUPTED = structs.replace(EVICTED, is_disruption=True)
RUNNING = make_status("Running", Ready="True")


def target(status: PodStatus) -> PodCondition | None:
    return find_condition(status.conditions, "DisruptionTarget")


def test_an_evicted_pod_has_failed_with_the_reason_of_the_eviction() -> None:
    status = with_eviction(RUNNING, EVICTED, make_pod())
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "Evicted",
        "The node was low on resource: memory.",
    )
    assert status.conditions == RUNNING.conditions


def test_a_disruption_is_a_condition_beside_those_that_are_there() -> None:
    status = with_eviction(RUNNING, DISRUPTED, make_pod())
    assert status.phase == "Failed"
    assert (status.conditions or ())[:1] == RUNNING.conditions
    assert target(status) == PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="TerminationByKubelet",
        message="The node was low on resource: memory.",
    )
    assert target(with_eviction(PodStatus(), DISRUPTED, make_pod())) == target(status)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_stays_as_it_is(phase: str) -> None:
    status = make_status(phase)
    assert with_eviction(status, DISRUPTED, make_pod()) is status


def test_without_a_reason_the_containers_decide() -> None:
    assert with_eviction(RUNNING, Eviction(is_disruption=True), make_pod()) is RUNNING


def test_the_condition_has_the_generation_of_the_pod() -> None:
    pod = make_pod()
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, generation=7))
    condition = target(with_eviction(RUNNING, DISRUPTED, pod))
    assert condition is not None
    assert condition.observed_generation == 7
