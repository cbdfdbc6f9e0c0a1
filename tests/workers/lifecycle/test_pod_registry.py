"""The registry of pod lifecycles and its queries."""

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.testing.builders import make_pod, make_static_pod
from podstatus.workers.lifecycle.pod_registry import (
    DynamicResources,
    NoDynamicResources,
    PodRegistry,
)
from podstatus.workers.lifecycle.state_machine import PodLifecycle, PodWorkerState, admitted

NO_RESOURCES = NoDynamicResources()


class PreparedResources:
    """Drivers that have prepared resources for these pods."""

    def __init__(self, *uids: str) -> None:
        self.uids = set(uids)

    def pod_might_need_to_unprepare_resources(self, uid: PodUID) -> bool:
        return uid in self.uids


def lives_of(
    *lives: PodLifecycle,
    all_known: bool = True,
    directory: PodManager | None = None,
    resources: DynamicResources = NO_RESOURCES,
) -> PodRegistry:
    known = PodRegistry(
        directory or PodManager(),
        all_sources_ready=lambda: all_known,
        dynamic_resources=resources,
    )
    for life in lives:
        known.put(life)
    return known


def life_of(pod: Pod, stage: PodWorkerState = PodWorkerState.SYNC) -> PodLifecycle:
    return structs.replace(admitted(pod, idle=True), state=stage)


@pytest.mark.parametrize("all_known", [True, False])
def test_an_unknown_pod_could_run_until_all_pods_are_known(all_known: bool) -> None:
    lives = lives_of(all_known=all_known)
    assert lives.could_have_running_containers(make_pod("p")) is (not all_known)


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


@pytest.mark.parametrize("lives", [(), (life_of(make_pod("p"), PodWorkerState.FINISHED),)])
def test_a_pod_is_held_back_until_its_resources_are_unprepared(
    lives: tuple[PodLifecycle, ...],
) -> None:
    pod = make_pod("p")
    resources = PreparedResources(pod.uid)
    registry = lives_of(*lives, resources=resources)
    assert registry.could_have_running_containers(pod)
    assert not registry.could_have_running_containers(make_pod("other"))
    resources.uids.clear()
    assert not registry.could_have_running_containers(pod)


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
    static = life_of(make_static_pod("p", uid="static"))
    namesake = life_of(make_pod("p", namespace="kube-system", uid="namesake"))
    assert not lives_of(static, namesake).waits_for_static_pod(namesake)


def test_what_is_forgotten_is_not_known() -> None:
    life = life_of(make_pod("p"))
    lives = lives_of(life)
    assert lives.get(PodUID("uid-p")) is life
    lives.forget(PodUID("uid-p"))
    lives.forget(PodUID("uid-p"))
    assert lives.get(PodUID("uid-p")) is None
    assert lives.all() == ()


def test_a_pod_is_active_until_its_containers_have_ended() -> None:
    lives = lives_of(
        life_of(make_pod("runs")),
        life_of(make_pod("ends"), PodWorkerState.TERMINATING),
        life_of(make_pod("ended"), PodWorkerState.TERMINATED),
    )
    active = {name: lives.active_pod(PodUID(f"uid-{name}")) for name in ("runs", "ends")}
    assert {name: pod and pod.name for name, pod in active.items()} == {
        "runs": "runs",
        "ends": "ends",
    }
    assert lives.active_pod(PodUID("uid-ended")) is None
    assert lives.active_pod(PodUID("uid-unknown")) is None


def test_a_static_pod_waits_for_no_other_name_and_no_other_kind_of_pod() -> None:
    new = life_of(make_static_pod("p", uid="new"))
    others = [
        life_of(make_static_pod("q", uid="old")),
        life_of(make_pod("p", uid="of-the-api")),
        structs.replace(life_of(make_static_pod("p", uid="gone")), pod=None),
    ]
    assert not lives_of(*others, new).waits_for_static_pod(new)
    namesake = life_of(make_static_pod("p", uid="older"))
    assert lives_of(*others, namesake, new).waits_for_static_pod(new)


def test_a_static_pod_that_is_not_registered_waits_for_its_namesake_only() -> None:
    new = life_of(make_static_pod("p", uid="new"))
    assert not lives_of().waits_for_static_pod(new)
    assert not lives_of(life_of(make_static_pod("q"))).waits_for_static_pod(new)


def test_listeners_learn_of_every_change() -> None:
    heard: list[PodUID] = []
    lives = lives_of()
    lives.add_listener(heard.append)
    lives.put(life_of(make_pod("p")))
    lives.put(life_of(make_pod("q")))
    lives.forget(PodUID("uid-p"))
    assert heard == ["uid-p", "uid-q", "uid-p"]
