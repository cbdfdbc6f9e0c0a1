"""The cpu and memory in a status: allocated, actuated, or from the previous status."""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceClaim, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.objects.runtime_facts import PodFacts, ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.pods.resources_in_status import container_resources, pod_resources
from podstatus.testing.builders import ended, running
from tests.support.container_facts import exited, runs

Amounts = dict[str, str]


def of(limits: Amounts | None = None, requests: Amounts | None = None) -> ResourceRequirements:
    return ResourceRequirements(limits=_list(limits), requests=_list(requests))


def _list(amounts: Amounts | None) -> dict[str, Quantity] | None:
    if amounts is None:
        return None
    return {name: Quantity(amount) for name, amount in amounts.items()}


ALLOCATED = of({"cpu": "2", "memory": "2Gi", "gpu": "1"}, {"cpu": "1", "memory": "1Gi"})
IN_FORCE = ResourceFacts(
    cpu_request=Quantity("500m"),
    cpu_limit=Quantity("1500m"),
    memory_request=Quantity("512Mi"),
    memory_limit=Quantity("1Gi"),
)
SHOWN = of({"cpu": "7", "memory": "7Gi", "gpu": "7"}, {"cpu": "6", "memory": "6Gi"})


def test_a_running_container_has_what_the_runtime_says() -> None:
    attempt = structs.replace(runs("app"), resources=IN_FORCE)
    assert container_resources(Container(resources=ALLOCATED), attempt, None) == of(
        {"cpu": "1500m", "memory": "1Gi", "gpu": "1"}, {"cpu": "500m", "memory": "512Mi"}
    )


def test_a_container_that_does_not_run_has_what_is_allocated() -> None:
    attempt = structs.replace(exited("app"), resources=IN_FORCE)
    assert container_resources(Container(resources=ALLOCATED), attempt, None) == ALLOCATED


@pytest.mark.parametrize(
    ("allocated", "expected"),
    [
        (of(), of()),
        (of(limits={}), of({"cpu": "1500m", "memory": "1Gi"})),
        (of(requests={}), of(requests={"cpu": "500m", "memory": "512Mi"})),
    ],
)
def test_a_map_that_the_spec_does_not_have_stays_away(
    allocated: ResourceRequirements, expected: ResourceRequirements
) -> None:
    attempt = structs.replace(runs("app"), resources=IN_FORCE)
    assert container_resources(Container(resources=allocated), attempt, None) == expected


def test_claims_are_kept() -> None:
    claims = (ResourceClaim(name="gpu"),)
    allocated = ResourceRequirements(claims=claims)
    assert container_resources(Container(resources=allocated), runs("app"), None).claims == claims


@pytest.mark.parametrize(
    ("allocated", "reported", "limit", "request_"),
    [
        ("1m", "10m", "1m", "10m"),
        ("1m", "11m", "11m", "11m"),
        ("11m", "10m", "10m", "10m"),
        ("1m", "2m", "1m", "1m"),
        ("1m", "3m", "1m", "3m"),
        ("3m", "2m", "3m", "2m"),
        ("1900u", "1", "1", "1"),
        ("2001u", "1m", "2001u", "1m"),
    ],
)
def test_cpu_below_what_the_kernel_can_do_is_shown_as_allocated(
    allocated: str, reported: str, limit: str, request_: str
) -> None:
    cpu = Quantity(reported)
    attempt = structs.replace(runs("app"), resources=ResourceFacts(cpu_limit=cpu, cpu_request=cpu))
    spec = of({"cpu": allocated}, {"cpu": allocated})
    assert container_resources(Container(resources=spec), attempt, None) == of(
        {"cpu": limit}, {"cpu": request_}
    )


SAME = structs.replace(running("app"), container_id="fake://app-0", resources=SHOWN)


@pytest.mark.parametrize(
    ("old", "kept"),
    [
        pytest.param(SAME, True, id="the same container"),
        pytest.param(structs.replace(SAME, container_id="fake://x"), False, id="another container"),
        pytest.param(structs.replace(SAME, state=ended("app").state), False, id="it did not run"),
        pytest.param(structs.replace(SAME, resources=None), False, id="nothing was shown"),
        pytest.param(None, False, id="never seen"),
    ],
)
def test_what_the_runtime_does_not_say_stays_as_it_was_shown(
    *, old: ContainerStatus | None, kept: bool
) -> None:
    resources = container_resources(Container(resources=ALLOCATED), runs("app"), old)
    if kept:
        assert resources == of(
            {"cpu": "7", "memory": "7Gi", "gpu": "1"}, {"cpu": "6", "memory": "6Gi"}
        )
    else:
        assert resources == ALLOCATED


# The pod as a whole

CONTAINERS = (
    Container(name="a", resources=of({"cpu": "1"}, {"cpu": "100m", "memory": "64Mi"})),
    Container(name="b", resources=of({"cpu": "1"}, {"cpu": "100m", "memory": "64Mi"})),
)


def pod(phase: str, resources: ResourceRequirements | None = None) -> Pod:
    return Pod(
        spec=PodSpec(containers=CONTAINERS, resources=resources), status=PodStatus(phase=phase)
    )


def test_a_pod_that_does_not_run_has_what_its_containers_and_itself_ask_for() -> None:
    resources = pod_resources(pod("Pending", of({"cpu": "4"})), PodFacts(), PodStatus())
    assert resources == of({"cpu": "4"}, {"cpu": "200m", "memory": "128Mi"})


def test_a_running_pod_shows_its_own_resources_and_the_memory_that_is_asked_for() -> None:
    resources = pod_resources(pod("Running", of({"cpu": "4"})), PodFacts(), PodStatus())
    assert resources == of({"cpu": "4"}, {"memory": "128Mi"})
    resources = pod_resources(
        pod("Running", of(requests={"memory": "1Gi"})), PodFacts(), PodStatus()
    )
    assert resources == of({}, {"memory": "1Gi"})


def test_a_running_pod_has_what_the_runtime_says_except_the_request_for_memory() -> None:
    resources = pod_resources(pod("Running"), PodFacts(resources=IN_FORCE), PodStatus())
    assert resources == of({"cpu": "1500m", "memory": "1Gi"}, {"cpu": "500m", "memory": "128Mi"})


@pytest.mark.parametrize(("phase", "kept"), [("Running", True), ("Pending", False)])
def test_a_running_pod_keeps_what_was_shown_while_it_ran(phase: str, *, kept: bool) -> None:
    resources = pod_resources(pod("Running"), PodFacts(), PodStatus(phase=phase, resources=SHOWN))
    if kept:
        assert resources == of({"cpu": "7", "memory": "7Gi"}, {"cpu": "6", "memory": "6Gi"})
    else:
        assert resources == of({}, {"memory": "128Mi"})
