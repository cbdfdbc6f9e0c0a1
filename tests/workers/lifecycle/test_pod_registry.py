"""The registry of pod lifecycles and its queries."""

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.testing.builders import make_pod, make_static_pod
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.lifecycle.state_machine import PodLifecycle, PodWorkerState, admitted


def lives_of(
    *lives: PodLifecycle, all_known: bool = True, directory: PodManager | None = None
) -> PodRegistry:
    known = PodRegistry(directory or PodManager(), all_sources_ready=lambda: all_known)
    for life in lives:
        known.put(life)
    return known


def life_of(pod: Pod, stage: PodWorkerState = PodWorkerState.SYNC) -> PodLifecycle:
    return structs.replace(admitted(pod, idle=True), state=stage)


@pytest.mark.parametrize("all_known", [True, False])
def test_an_unknown_pod_could_run_until_all_pods_are_known(all_known: bool) -> None:
    lives = lives_of(all_known=all_known)
    assert lives.could_have_running_containers(make_pod("p")) is not all_known


@pytest.mark.parametrize(
    ("stage", "could_run"),
    [
        (PodWorkerState.SYNC, True),
        (PodWorkerState.TERMINATING, True),
        (PodWorkerState.TERMINATED, False),
        (PodWorkerState.FINISHED, False),
    ],
)
@pytest.mark.parametrize("all_known", [True, False])
def test_a_known_pod_could_run_until_it_was_seen_ended(
    stage: PodWorkerState, could_run: bool, all_known: bool
) -> None:
    lives = lives_of(life_of(make_pod("p"), stage), all_known=all_known)
    assert lives.could_have_running_containers(make_pod("p")) is could_run


def test_a_mirror_pod_stands_for_its_static_pod() -> None:
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    lives = lives_of(life_of(static), directory=PodManager([static, mirror]))
    assert lives.could_have_running_containers(mirror)


def test_pods_that_have_ended_hold_nothing() -> None:
    pods = [make_pod(stage.value) for stage in PodWorkerState]
    lives = lives_of(
        *(life_of(pod, stage) for pod, stage in zip(pods, PodWorkerState, strict=True))
    )
    assert [pod.name for pod in lives.active_pods()] == ["sync", "terminating"]


def test_a_pod_is_looked_after_until_it_has_finished() -> None:
    lives = lives_of(
        life_of(make_pod("p"), PodWorkerState.TERMINATED),
        life_of(make_pod("q"), PodWorkerState.FINISHED),
    )
    assert lives.has_unfinished(("default", "p"))
    assert not lives.has_unfinished(("default", "q"))
    assert not lives.has_unfinished(("other", "p"))


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        (PodWorkerState.SYNC, True),
        (PodWorkerState.TERMINATING, True),
        (PodWorkerState.TERMINATED, True),
        (PodWorkerState.FINISHED, False),
    ],
)
def test_a_static_pod_waits_for_the_one_that_had_its_name_before(
    first: PodWorkerState, waits: bool
) -> None:
    old, new = life_of(make_static_pod(uid="old"), first), life_of(make_static_pod(uid="new"))
    lives = lives_of(old, new)
    assert lives.waits_for_static_pod(new) is waits
    assert not lives.waits_for_static_pod(old), "or they would wait for each other"


def test_other_pods_do_not_wait() -> None:
    old, new = life_of(make_pod("p", uid="old")), life_of(make_pod("p", uid="new"))
    assert not lives_of(old, new).waits_for_static_pod(new)


def test_what_is_forgotten_is_not_known() -> None:
    lives = lives_of(life_of(make_pod("p")))
    lives.forget(PodUID("uid-p"))
    lives.forget(PodUID("uid-p"))
    assert lives.get(PodUID("uid-p")) is None
    assert lives.all() == ()
