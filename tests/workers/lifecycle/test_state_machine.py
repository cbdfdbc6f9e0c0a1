import pytest
from msgspec import structs

from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.workers.lifecycle.state_machine import (
    Ending,
    PodLife,
    Stage,
    begun,
    books_closed,
    completed,
    could_have_running_containers,
    is_over,
    killed,
    orphaned,
    removed,
    stopped,
    updated,
)

EVICTED = Ending(reason="Evicted", message="The node was low on resource: memory.")


def pod(phase: str = "", *, deleted: int | None = None, grace: int | None = 30) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name="p",
            namespace="default",
            uid="u",
            deletion_timestamp=None if deleted is None else Time.parse("2026-01-01T00:00:00Z"),
            deletion_grace_period_seconds=deleted,
        ),
        spec=PodSpec(termination_grace_period_seconds=grace),
        status=PodStatus(phase=phase),
    )


RUNNING = begun(pod(), quiet=True)
TERMINATING = updated(RUNNING, pod(deleted=20))
TERMINATED = stopped(TERMINATED_BY_ITSELF := completed(RUNNING))
FINISHED = books_closed(TERMINATED, reclaimed=False)


@pytest.mark.parametrize(
    ("brought", "quiet", "stage"),
    [
        (pod(), True, Stage.SYNC),
        (pod("Running"), False, Stage.SYNC),
        (pod("Running", deleted=5), False, Stage.TERMINATING),
        (pod(deleted=5), True, Stage.TERMINATING),
        (pod("Succeeded"), True, Stage.TERMINATED),
        (pod("Failed", deleted=0), True, Stage.TERMINATED),
        (pod("Failed"), False, Stage.TERMINATING),
    ],
)
def test_where_a_life_begins(brought: Pod, quiet: bool, stage: Stage) -> None:
    assert begun(brought, quiet=quiet).stage is stage


@pytest.mark.parametrize(
    ("life", "stage"),
    [
        (updated(RUNNING, pod()), Stage.SYNC),
        (updated(RUNNING, pod("Running")), Stage.SYNC),
        (updated(RUNNING, pod("Failed")), Stage.TERMINATING),
        (updated(RUNNING, pod(deleted=30)), Stage.TERMINATING),
        (removed(RUNNING), Stage.TERMINATING),
        (killed(RUNNING, EVICTED), Stage.TERMINATING),
        (completed(RUNNING), Stage.TERMINATING),
        (stopped(RUNNING), Stage.SYNC),
        (books_closed(RUNNING, reclaimed=True), Stage.SYNC),
        (updated(TERMINATING, pod()), Stage.TERMINATING),
        (removed(TERMINATING), Stage.TERMINATING),
        (killed(TERMINATING, EVICTED), Stage.TERMINATING),
        (completed(TERMINATING), Stage.TERMINATING),
        (stopped(TERMINATING), Stage.TERMINATED),
        (books_closed(TERMINATING, reclaimed=True), Stage.TERMINATING),
        (updated(TERMINATED, pod("Running")), Stage.TERMINATED),
        (removed(TERMINATED), Stage.TERMINATED),
        (killed(TERMINATED, EVICTED), Stage.TERMINATED),
        (stopped(TERMINATED), Stage.TERMINATED),
        (books_closed(TERMINATED, reclaimed=False), Stage.FINISHED),
        (updated(FINISHED, pod("Succeeded")), Stage.FINISHED),
        (updated(FINISHED, pod("Running")), Stage.FINISHED),
        (killed(FINISHED, EVICTED), Stage.FINISHED),
        (stopped(FINISHED), Stage.FINISHED),
        (updated(FINISHED, pod("Succeeded", deleted=0)), Stage.TERMINATED),
        (removed(FINISHED), Stage.TERMINATED),
        (books_closed(removed(FINISHED), reclaimed=True), Stage.FINISHED),
    ],
)
def test_every_transition(life: PodLife, stage: Stage) -> None:
    assert life.stage is stage


def test_a_pod_deleted_while_its_books_are_closed_is_reclaimed_next() -> None:
    life = books_closed(updated(TERMINATED, pod(deleted=3)), reclaimed=False)
    assert life.stage is Stage.TERMINATED
    assert books_closed(life, reclaimed=True).stage is Stage.FINISHED


@pytest.mark.parametrize(
    ("life", "could"),
    [
        (RUNNING, True),
        (TERMINATING, True),
        (orphaned(PodUID("u"), "default", "p"), True),
        (TERMINATED, False),
        (stopped(TERMINATING), False),
        (FINISHED, False),
        (updated(FINISHED, pod("Succeeded", deleted=0)), True),
        (books_closed(removed(FINISHED), reclaimed=True), False),
    ],
)
def test_who_could_have_running_containers_or_has_something_left(
    life: PodLife, could: bool
) -> None:
    assert could_have_running_containers(life) is could


def test_a_life_is_over_when_it_has_left_and_nothing_is_left() -> None:
    assert not is_over(FINISHED)
    assert not is_over(removed(FINISHED))
    assert is_over(books_closed(removed(FINISHED), reclaimed=True))
    deleted = books_closed(updated(FINISHED, pod(deleted=0)), reclaimed=True)
    assert not is_over(deleted)
    assert is_over(removed(deleted))


def test_a_pod_that_comes_again_while_it_ends_waits_for_its_end() -> None:
    again = pod("", grace=7)
    life = updated(removed(RUNNING), again)
    assert life.stage is Stage.TERMINATING
    assert life.returns is again
    assert removed(life).returns is None


@pytest.mark.parametrize(
    ("life", "seconds"),
    [
        (RUNNING, 0),
        (completed(RUNNING), 30),
        (removed(RUNNING), 30),
        (updated(RUNNING, pod(deleted=20)), 20),
        (updated(RUNNING, pod(deleted=0)), 1),
        (updated(RUNNING, pod(deleted=100)), 100),
        (updated(updated(RUNNING, pod(deleted=20)), pod(deleted=5)), 5),
        (updated(updated(RUNNING, pod(deleted=5)), pod(deleted=20)), 5),
        (killed(RUNNING, EVICTED, 3), 3),
        (killed(RUNNING, EVICTED, 0), 1),
        (killed(RUNNING, EVICTED), 30),
        (completed(begun(pod(grace=None), quiet=True)), 1),
        (orphaned(PodUID("u"), "default", "p"), 1),
    ],
)
def test_the_shortest_grace_that_was_asked_for_counts(life: PodLife, seconds: int) -> None:
    assert life.grace_seconds == seconds


def test_why_a_pod_ends_is_what_was_said_first() -> None:
    first = killed(RUNNING, EVICTED)
    assert killed(first, Ending(reason="Other")).ending == EVICTED


def test_a_life_has_the_newest_pod_of_its_source() -> None:
    newer = structs.replace(pod(), spec=PodSpec(host_network=True))
    assert updated(RUNNING, newer).pod is newer
    assert updated(TERMINATED, newer).pod is newer
