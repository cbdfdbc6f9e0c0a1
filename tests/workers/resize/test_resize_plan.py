"""Plans that apply the allocation of a pod."""

import pytest
from msgspec import structs

from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import Container, ContainerResizePolicy, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    ResourceFacts,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.resize.plan import (
    NO_RESIZE,
    ResizePlan,
    plan_resize,
    running_containers,
    with_actuated,
)
from tests.workers.pods import a_pod, facts_of, sidecar

RUNNING, EXITED = ContainerRunState.RUNNING, ContainerRunState.EXITED


def has(text: str) -> ResourceRequirements:
    """Requests and limits, as in `cpu=1 memory=2/3`."""
    sides: tuple[dict[str, Quantity], dict[str, Quantity]] = ({}, {})
    for word in text.split():
        name, amounts = word.split("=")
        for side, amount in zip(sides, amounts.split("/"), strict=False):
            if amount:
                side[name] = Quantity(amount)
    return ResourceRequirements(requests=sides[0] or None, limits=sides[1] or None)


def asks(text: str, *restarts_for: str, name: str = "a") -> Container:
    policy = tuple(
        ContainerResizePolicy(resource_name=it, restart_policy="RestartContainer")
        for it in restarts_for
    )
    return Container(name=name, resources=has(text), resize_policy=policy)


def in_force(pod: str | None = None, **containers: str) -> PodResourceInfo:
    return PodResourceInfo(
        container_resources={name: has(text) for name, text in containers.items()},
        pod_level_resources=None if pod is None else has(pod),
    )


def attempt(name: str = "a", state: ContainerRunState = RUNNING, **more: object) -> ContainerFacts:
    return structs.replace(ContainerFacts(name=name, state=state, id=f"id-{name}"), **more)


def as_a_whole(pod: Pod, text: str) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, resources=has(text)))


IN_PLACE = ResizePlan(in_place={"a": "id-a"})
RESTART = ResizePlan(restart=frozenset({"a"}))


@pytest.mark.parametrize(
    ("granted", "known", "plan"),
    [
        (asks("cpu=1"), "cpu=1", NO_RESIZE),
        (asks("cpu=1"), "cpu=1000m", NO_RESIZE),
        (asks("cpu=1"), "cpu=999999u", NO_RESIZE),
        (asks("cpu=2"), "cpu=1", IN_PLACE),
        (asks("cpu=1/2"), "cpu=1/1", IN_PLACE),
        (asks("memory=1Gi"), "memory=1024Mi", NO_RESIZE),
        (asks("memory=1Gi"), "memory=1G", IN_PLACE),
        (asks("memory=1/2"), "memory=1/3", IN_PLACE),
        (asks("cpu=1/2"), "cpu=1", IN_PLACE),
        (asks("cpu=2", "cpu"), "cpu=1", RESTART),
        (asks("cpu=1/2", "cpu"), "cpu=1/1", RESTART),
        (asks("cpu=2", "memory"), "cpu=1", IN_PLACE),
        (asks("cpu=2 memory=2", "memory"), "cpu=1 memory=1", RESTART),
        (asks("memory=2", "memory"), "memory=1", RESTART),
        (asks("ephemeral-storage=2"), "ephemeral-storage=1", NO_RESIZE),
        (asks("memory=1e500"), "memory=1", IN_PLACE),
    ],
)
def test_what_differs_is_resized_or_started_again(
    granted: Container, known: str, plan: ResizePlan
) -> None:
    assert plan_resize(a_pod(granted), in_force(a=known), facts_of(attempt())) == plan
    assert plan_resize(a_pod(granted), None, facts_of(attempt())) == NO_RESIZE
    assert plan_resize(a_pod(granted), in_force(), facts_of(attempt())) == NO_RESIZE


@pytest.mark.parametrize(
    "facts",
    [
        facts_of(),
        facts_of(attempt(state=EXITED)),
        facts_of(attempt(state=ContainerRunState.CREATED)),
        facts_of(attempt(active=False)),
    ],
)
def test_what_does_not_run_gets_it_with_its_next_start(facts: PodFacts) -> None:
    plan = plan_resize(a_pod(asks("cpu=2", "cpu")), in_force(a="cpu=1"), facts)
    assert plan == ResizePlan(idle=frozenset({"a"}))
    assert not plan.is_in_progress


def test_sidecars_and_init_containers_are_resized_too() -> None:
    side = sidecar("s", resources=has("cpu=2"))
    pod = a_pod("b", init=[side, asks("cpu=3", name="i")])
    facts = facts_of(attempt("s"), attempt("i"), attempt("b"))
    plan = plan_resize(pod, in_force(s="cpu=1", i="cpu=1", b=""), facts)
    assert plan.in_place == {"s": "id-s", "i": "id-i"}
    assert running_containers(pod, facts) == {"s": "id-s", "i": "id-i", "b": "id-b"}


def test_a_pod_as_a_whole_is_resized_and_who_has_no_limit_of_its_own_with_it() -> None:
    pod = as_a_whole(a_pod(asks("cpu=1/1"), asks("cpu=1", name="b")), "cpu=2/3")
    facts = facts_of(attempt("a"), attempt("b"))
    plan = plan_resize(pod, in_force("cpu=2/2", a="cpu=1/1", b="cpu=1"), facts)
    assert plan == ResizePlan(in_place={"b": "id-b"}, pod_level=True)
    assert plan_resize(pod, in_force("cpu=2/3", a="cpu=1/1", b="cpu=1"), facts) == NO_RESIZE
    plan = plan_resize(pod, in_force("cpu=1/3", a="cpu=1/1", b="cpu=1"), facts)
    assert plan == ResizePlan(pod_level=True)
    assert plan.is_in_progress


def test_what_the_runtime_does_not_say_is_what_was_asked_of_it() -> None:
    said = ResourceFacts(cpu_request=Quantity("999m"))
    facts = facts_of(attempt(resources=said), attempt("b"), attempt("c", EXITED))
    known = in_force(a="cpu=1/2 memory=3/4", b="memory=5", c="cpu=1")
    assert [c.resources for c in with_actuated(facts, known).containers] == [
        ResourceFacts(
            cpu_request=Quantity("999m"),
            cpu_limit=Quantity("2"),
            memory_request=Quantity("3"),
            memory_limit=Quantity("4"),
        ),
        ResourceFacts(memory_request=Quantity("5")),
        None,
    ]
    assert with_actuated(facts, None) is facts
