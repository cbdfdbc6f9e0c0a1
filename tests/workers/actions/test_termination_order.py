"""Stop order and grace periods of a pod's containers."""

import pytest
from msgspec import structs

from podstatus.kube.objects.runtime_facts import ContainerFacts
from podstatus.workers.actions.termination_order import (
    container_grace,
    remaining_grace,
    termination_order,
)
from tests.support.container_facts import created, exited, runs, unknown
from tests.workers.pods import a_pod, facts_of, sidecar

POD = a_pod("a", "b", init=["i", sidecar("s"), sidecar("t")], ephemeral=["d"])


@pytest.mark.parametrize(
    ("what", "attempts", "waves"),
    [
        ("nothing runs", [exited("a"), exited("s")], []),
        ("regular ones at once", [runs("a"), runs("b")], [["a", "b"]]),
        (
            "sidecars last, in reverse",
            [runs("a"), runs("s"), runs("t")],
            [["a"], ["t"], ["s"]],
        ),
        ("sidecars alone", [runs("s"), exited("a"), runs("t")], [["t"], ["s"]]),
        ("while it is initialized", [runs("i"), runs("s")], [["i"], ["s"]]),
        ("ephemeral ones with the rest", [runs("d"), runs("a"), runs("s")], [["d", "a"], ["s"]]),
        ("who may run is stopped too", [created("a"), unknown("b")], [["a", "b"]]),
        ("unknown to the spec", [runs("x"), runs("s")], [["x"], ["s"]]),
    ],
)
def test_sidecars_are_stopped_after_those_they_serve(
    what: str, attempts: list[ContainerFacts], waves: list[list[str]]
) -> None:
    order = termination_order(POD, facts_of(*attempts))
    assert [[attempt.name for attempt in wave] for wave in order] == waves, what


def test_a_pod_that_only_the_runtime_knows_is_stopped_at_once() -> None:
    assert termination_order(None, facts_of(runs("a"), runs("s"))) == ((runs("a"), runs("s")),)


@pytest.mark.parametrize(
    ("deletion", "own", "spec", "expected"),
    [
        (None, None, 30, 30),
        (None, 3, 30, 3),
        (None, 60, 30, 60),
        (7, 3, 30, 7),
        (None, None, None, 2),
        (None, None, 0, 0),
        (None, 0, 30, 0),
        (0, None, 30, 0),
    ],
)
def test_the_grace_of_one_container(
    deletion: int | None, own: int | None, spec: int | None, expected: int
) -> None:
    pod = a_pod("a", grace=spec)
    metadata = structs.replace(pod.metadata, deletion_grace_period_seconds=deletion)
    assert container_grace(structs.replace(pod, metadata=metadata), own) == expected


@pytest.mark.parametrize(
    ("grace", "waited", "expected"), [(30, 0, 30), (30, 4.9, 26), (30, 29, 2), (30, 99, 2)]
)
def test_who_waits_for_its_turn_gets_what_is_left(
    grace: float, waited: float, expected: float
) -> None:
    assert remaining_grace(grace, waited) == expected
