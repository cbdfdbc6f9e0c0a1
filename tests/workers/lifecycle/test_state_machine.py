import pytest
from msgspec import structs

from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.workers.lifecycle.state_machine import (
    Eviction,
    PodLifecycle,
    PodWorkerState,
    RequestedEviction,
    admitted,
    completed,
    could_have_running_containers,
    effective_grace,
    evicted,
    finalized,
    is_forgettable,
    orphaned,
    reclaimed,
    removed,
    terminated,
    updated,
)

EVICTED = Eviction(reason="Evicted", message="The node was low on resource: memory.")


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


RUNNING = admitted(pod(), idle=True)
TERMINATING = updated(RUNNING, pod(deleted=20))
TERMINATED = terminated(TERMINATED_BY_ITSELF := completed(RUNNING))
FINISHED = finalized(TERMINATED, cleaned_up=False)


@pytest.mark.parametrize(
    ("brought", "quiet", "stage"),
    [
        (pod(), True, PodWorkerState.SYNC),
        (pod("Running"), False, PodWorkerState.SYNC),
        (pod("Running", deleted=5), False, PodWorkerState.TERMINATING),
        (pod(deleted=5), True, PodWorkerState.TERMINATING),
        (pod("Succeeded"), True, PodWorkerState.TERMINATED),
        (pod("Failed", deleted=0), True, PodWorkerState.TERMINATED),
        (pod("Failed"), False, PodWorkerState.TERMINATING),
    ],
)
def test_where_a_life_begins(brought: Pod, quiet: bool, stage: PodWorkerState) -> None:
    assert admitted(brought, idle=quiet).state is stage


@pytest.mark.parametrize(
    ("life", "stage"),
    [
        (updated(RUNNING, pod()), PodWorkerState.SYNC),
        (updated(RUNNING, pod("Running")), PodWorkerState.SYNC),
        (updated(RUNNING, pod("Failed")), PodWorkerState.TERMINATING),
        (updated(RUNNING, pod(deleted=30)), PodWorkerState.TERMINATING),
        (removed(RUNNING), PodWorkerState.TERMINATING),
        (evicted(RUNNING, EVICTED), PodWorkerState.TERMINATING),
        (completed(RUNNING), PodWorkerState.TERMINATING),
        (terminated(RUNNING), PodWorkerState.SYNC),
        (finalized(RUNNING, cleaned_up=True), PodWorkerState.SYNC),
        (updated(TERMINATING, pod()), PodWorkerState.TERMINATING),
        (removed(TERMINATING), PodWorkerState.TERMINATING),
        (evicted(TERMINATING, EVICTED), PodWorkerState.TERMINATING),
        (completed(TERMINATING), PodWorkerState.TERMINATING),
        (terminated(TERMINATING), PodWorkerState.TERMINATED),
        (finalized(TERMINATING, cleaned_up=True), PodWorkerState.TERMINATING),
        (updated(TERMINATED, pod("Running")), PodWorkerState.TERMINATED),
        (removed(TERMINATED), PodWorkerState.TERMINATED),
        (evicted(TERMINATED, EVICTED), PodWorkerState.TERMINATED),
        (terminated(TERMINATED), PodWorkerState.TERMINATED),
        (finalized(TERMINATED, cleaned_up=False), PodWorkerState.FINISHED),
        (updated(FINISHED, pod("Succeeded")), PodWorkerState.FINISHED),
        (updated(FINISHED, pod("Running")), PodWorkerState.FINISHED),
        (evicted(FINISHED, EVICTED), PodWorkerState.FINISHED),
        (terminated(FINISHED), PodWorkerState.FINISHED),
        (updated(FINISHED, pod("Succeeded", deleted=0)), PodWorkerState.TERMINATED),
        (removed(FINISHED), PodWorkerState.TERMINATED),
        (finalized(removed(FINISHED), cleaned_up=True), PodWorkerState.FINISHED),
    ],
)
def test_every_transition(life: PodLifecycle, stage: PodWorkerState) -> None:
    assert life.state is stage


def test_a_new_pod_is_neither_ending_nor_cleaned_up() -> None:
    assert (
        PodLifecycle(
            uid=PodUID("u"),
            namespace="default",
            name="p",
            pod=pod(),
            state=PodWorkerState.SYNC,
            grace_seconds=0,
            eviction=Eviction(reason="", message="", is_disruption=False),
            deleted=False,
            source_removed=False,
            finalized=False,
            reclaimed=False,
            cleaned_up=False,
            recreated_as=None,
        )
        == RUNNING
    )


def test_states_are_words_of_the_log() -> None:
    words = [state.value for state in PodWorkerState]
    assert words == ["sync", "terminating", "terminated", "finished"]


def test_a_pod_that_had_ended_and_was_deleted_while_the_agent_was_away_is_reclaimed() -> None:
    ended = pod("Failed", deleted=0)
    life = finalized(admitted(ended, idle=True), cleaned_up=False)
    assert (life.state, life.pod) == (PodWorkerState.TERMINATED, ended)


def test_a_pod_deleted_while_its_books_are_closed_is_reclaimed_next() -> None:
    life = finalized(updated(TERMINATED, pod(deleted=3)), cleaned_up=False)
    assert life.state is PodWorkerState.TERMINATED
    assert finalized(life, cleaned_up=True).state is PodWorkerState.FINISHED


@pytest.mark.parametrize(
    ("life", "could"),
    [
        (RUNNING, True),
        (TERMINATING, True),
        (orphaned(PodUID("u"), "default", "p"), True),
        (TERMINATED, False),
        (terminated(TERMINATING), False),
        (FINISHED, False),
        (updated(FINISHED, pod("Succeeded", deleted=0)), True),
        (finalized(removed(FINISHED), cleaned_up=True), False),
    ],
)
def test_who_could_have_running_containers_or_has_something_left(
    life: PodLifecycle, could: bool
) -> None:
    assert could_have_running_containers(life) is could


def test_a_life_is_over_when_it_has_left_and_nothing_is_left() -> None:
    assert not is_forgettable(FINISHED)
    assert not is_forgettable(removed(FINISHED))
    assert is_forgettable(finalized(removed(FINISHED), cleaned_up=True))
    deleted = finalized(updated(FINISHED, pod(deleted=0)), cleaned_up=True)
    assert not is_forgettable(deleted)
    assert is_forgettable(removed(deleted))


def test_a_pod_that_comes_again_while_it_ends_waits_for_its_end() -> None:
    again = pod("", grace=7)
    life = updated(removed(RUNNING), again)
    assert life.state is PodWorkerState.TERMINATING
    assert life.recreated_as is again
    assert removed(life).recreated_as is None


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
        (evicted(RUNNING, EVICTED, 3), 3),
        (evicted(RUNNING, EVICTED, 0), 1),
        (evicted(RUNNING, EVICTED), 30),
        (completed(admitted(pod(grace=None), idle=True)), 1),
        (orphaned(PodUID("u"), "default", "p"), 1),
    ],
)
def test_the_shortest_grace_that_was_asked_for_counts(life: PodLifecycle, seconds: int) -> None:
    assert life.grace_seconds == seconds


def test_an_orphan_gets_no_longer_grace() -> None:
    assert effective_grace(orphaned(PodUID("u"), "default", "p"), 30) == 1


def test_why_a_pod_ends_is_what_was_said_first() -> None:
    first = evicted(RUNNING, EVICTED)
    assert evicted(first, Eviction(reason="Other")).eviction == EVICTED


def test_a_life_has_the_newest_pod_of_its_source() -> None:
    newer = structs.replace(pod(), spec=PodSpec(host_network=True))
    assert updated(RUNNING, newer).pod is newer
    assert updated(TERMINATED, newer).pod is newer


def test_an_eviction_that_a_previous_agent_began_goes_on() -> None:
    requested = RequestedEviction(eviction=EVICTED, grace_seconds=1)
    lifecycle = admitted(pod("Running"), idle=False, requested=requested)
    assert lifecycle.state is PodWorkerState.TERMINATING
    assert (lifecycle.eviction, lifecycle.grace_seconds) == (EVICTED, 1)
    ended = admitted(pod("Failed"), idle=True, requested=requested)
    assert (ended.state, ended.eviction) == (PodWorkerState.TERMINATED, Eviction())


def test_an_eviction_that_a_previous_agent_began_goes_on_in_a_pod_that_was_deleted_since() -> None:
    requested = RequestedEviction(eviction=EVICTED, grace_seconds=7)
    lifecycle = admitted(pod("Running", deleted=20), idle=False, requested=requested)
    assert (lifecycle.state, lifecycle.deleted) == (PodWorkerState.TERMINATING, True)
    assert (lifecycle.eviction, lifecycle.grace_seconds) == (EVICTED, 7)
    assert admitted(pod(deleted=2), idle=False, requested=requested).grace_seconds == 2


def test_the_disk_of_a_finished_pod_can_be_reclaimed_before_it_is_deleted() -> None:
    lifecycle = reclaimed(FINISHED)
    assert (lifecycle.state, lifecycle.reclaimed) == (PodWorkerState.TERMINATED, True)
    assert not could_have_running_containers(lifecycle)
    cleaned = finalized(lifecycle, cleaned_up=True)
    assert cleaned.state is PodWorkerState.FINISHED
    assert reclaimed(cleaned) is cleaned
    # Nothing is left to clean up when it is deleted later.
    assert updated(cleaned, pod("Failed", deleted=0)).state is PodWorkerState.FINISHED


@pytest.mark.parametrize("lifecycle", [RUNNING, TERMINATING, TERMINATED])
def test_the_disk_of_a_pod_that_is_not_finished_is_not_reclaimed(lifecycle: PodLifecycle) -> None:
    assert reclaimed(lifecycle) is lifecycle
