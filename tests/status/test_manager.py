import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.update import ContainerType, Termination
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from tests.support.status_node import Node, condition_of, deleting, of_generation

STATIC, MIRROR = make_static_pod(), make_static_pod(mirror=True)
RUNNING = make_status("Running", running("app"), Ready="True")


def containers(status: PodStatus | None) -> dict[str, ContainerStatus]:
    assert status is not None
    return {container.name: container for container in status.container_statuses or ()}


# Reading


def test_a_pod_without_a_status_has_none() -> None:
    assert Node(make_pod()).manager.pod_status("uid-pod") is None


def test_the_uid_of_a_mirror_finds_the_status_of_its_static_pod() -> None:
    node = Node(STATIC, MIRROR)
    node.manager.set_pod_status(STATIC, RUNNING)
    status = node.manager.pod_status(STATIC.uid)
    assert status is not None
    assert node.manager.pod_status(MIRROR.uid) is status


# Writing


def test_setting_answers_with_the_cached_status_and_whether_it_is_new() -> None:
    pod = make_pod()
    node = Node(pod)
    status, changed = node.manager.set_pod_status(pod, RUNNING)
    assert changed
    assert status is node.manager.pod_status(pod.uid)
    assert (status.start_time, condition_of(status, "Ready").last_transition_time) == (
        node.now,
        node.now,
    )
    again, changed = node.manager.set_pod_status(pod, RUNNING)
    assert not changed
    assert again is status


def test_versions_grow_by_one_with_every_change() -> None:
    pod = make_pod()
    node = Node(pod)
    for phase in ("Pending", "Pending", "Running", "Failed"):
        node.manager.set_pod_status(pod, make_status(phase))
    assert node.entry(pod).version == 3


def test_a_status_that_was_removed_and_comes_back_starts_at_version_1() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, make_status("Pending"))
    node.manager.set_pod_status(pod, make_status("Running"))
    node.manager.remove_orphaned_statuses(set())
    node.manager.set_pod_status(pod, make_status("Running"))
    assert node.entry(pod).version == 1
    assert [call.is_added for call in node.notifier.calls] == [True, False, True]


def test_the_manager_does_not_police_the_phase() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, make_status("Failed"))
    node.sync()
    _, changed = node.manager.set_pod_status(pod, make_status("Running"))
    assert changed
    node.sync()
    assert node.stored(pod).status.phase == "Running"


def test_a_change_is_signalled_until_pop_changes() -> None:
    pod = make_pod()
    node = Node(pod)
    assert not node.manager.pop_changes()
    node.manager.set_pod_status(pod, RUNNING)
    assert node.manager.pop_changes()
    assert not node.manager.pop_changes()
    node.manager.set_pod_status(pod, RUNNING)
    assert not node.manager.pop_changes()
    node.manager.set_pod_status(pod, make_status("Failed"))
    node.sync()
    assert not node.manager.pop_changes()


def test_surprise_15_the_generation_is_that_of_the_pod_and_never_goes_back() -> None:
    node = Node()
    reported = structs.replace(RUNNING, observed_generation=99)
    for generation, expected in ((3, 3), (3, 3), (5, 5), (4, 5)):
        pod = of_generation(make_pod(), generation)
        status, _ = node.manager.set_pod_status(pod, reported)
        assert status.observed_generation == expected


def test_surprise_15_termination_does_not_set_the_generation() -> None:
    node = Node()
    node.manager.set_pod_status(of_generation(make_pod(), 3), RUNNING)
    node.manager.terminate_pod(of_generation(make_pod(), 5))
    assert node.entry(make_pod()).status.observed_generation == 3


def test_surprise_16_every_status_of_a_pod_being_deleted_is_a_new_version() -> None:
    pod = deleting(make_pod())
    node = Node(pod)
    for version in (1, 2, 3):
        _, changed = node.manager.set_pod_status(pod, RUNNING)
        assert changed
        assert node.entry(pod).version == version


def test_surprise_17_a_refused_status_answers_with_the_cached_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod = make_pod(restart_policy="Never")
    node = Node(pod)
    cached, _ = node.manager.set_pod_status(pod, make_status("Failed", ended("app", 1)))
    node.manager.pop_changes()
    caplog.set_level(logging.DEBUG, "podstatus")
    status, changed = node.manager.set_pod_status(pod, RUNNING)
    assert status is cached
    assert not changed
    assert not node.manager.pop_changes()
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.message.startswith(
        "status refused: pod=default/pod uid=uid-pod reason=terminated container app attempted"
    )


def test_surprise_17_a_refused_first_status_answers_with_an_empty_one() -> None:
    pod = make_pod(restart_policy="Never", status=make_status("Failed", ended("app", 1)))
    node = Node(pod)
    assert node.manager.set_pod_status(pod, RUNNING) == (PodStatus(), False)
    assert node.manager.pod_status(pod.uid) is None


def test_an_uncached_pod_is_judged_by_its_mirror() -> None:
    started = Time.parse("2024-01-01T00:00:00Z")
    mirror = structs.replace(MIRROR, status=PodStatus(start_time=started))
    static = structs.replace(
        STATIC, status=PodStatus(start_time=Time.parse("2020-01-01T00:00:00Z"))
    )
    node = Node(static, mirror)
    status, _ = node.manager.set_pod_status(static, RUNNING)
    assert status.start_time == started


def test_an_uncached_pod_without_a_mirror_is_judged_by_itself() -> None:
    started = Time.parse("2024-01-01T00:00:00Z")
    pod = make_pod(status=PodStatus(start_time=started))
    status, _ = Node(pod).manager.set_pod_status(pod, RUNNING)
    assert status.start_time == started


def test_gates_decide_what_counts() -> None:
    pod = make_pod()
    condition = make_status("Running", PodReadyToStartContainers="True")
    for gates, expected in (
        (FeatureGates(), True),
        (FeatureGates(pod_ready_to_start_containers_condition=False), False),
    ):
        node = Node(pod, gates=gates)
        node.manager.set_pod_status(pod, make_status("Running"))
        _, changed = node.manager.set_pod_status(pod, condition)
        assert changed is expected


def test_exits_are_counted_once_and_not_when_refused() -> None:
    pod = make_pod(containers=("a", "b"), restart_policy="Never")
    node = Node(pod)
    exit_of_a = Termination(ContainerType.REGULAR, 1, "Error")
    node.manager.set_pod_status(pod, make_status("Running", ended("a", 1), running("b")))
    node.manager.set_pod_status(pod, make_status("Running", ended("a", 1), running("b")))
    assert node.observer.terminations == {exit_of_a: 1}
    node.manager.set_pod_status(pod, make_status("Running", running("a"), ended("b", 2)))
    assert node.observer.terminations == {exit_of_a: 1}


def test_an_exit_that_is_hidden_behind_a_twin_is_counted_with_every_update() -> None:
    pod = make_pod()
    node = Node(pod)
    twins = make_status("Running", running("app"), ended("app", 1))
    for count in (1, 2, 3):
        _, changed = node.manager.set_pod_status(pod, twins)
        assert changed is (count == 1)
        assert node.observer.terminations.total() == count


def test_entries_are_those_of_one_moment() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    before = node.manager.entries()
    node.manager.terminate_pod(pod)
    assert before[pod.uid].version == 1
    assert (before[pod.uid].namespace, before[pod.uid].name) == ("default", "pod")


STATUSES = (
    make_status("Pending", waiting("app")),
    RUNNING,
    make_status("Running", running("app", ready=False), Ready="False"),
    make_status("Running", ended("app", 1), Ready="False"),
)


@given(
    restart_policy=st.sampled_from(["Always", "Never"]),
    calls=st.lists(
        st.tuples(
            st.sampled_from(["status"] * 6 + ["readiness", "terminate", "remove", "time"]),
            st.integers(0, len(STATUSES) - 1),
            st.integers(1, 2),
        ),
        max_size=12,
    ),
)
def test_a_repeated_status_has_the_effect_of_a_new_pod_with_the_same_status(
    restart_policy: str, calls: list[tuple[str, int, int]]
) -> None:
    pods = [
        of_generation(make_pod(restart_policy=restart_policy), generation) for generation in (1, 2)
    ]
    nodes = [Node(pods[0]), Node(pods[0])]
    for call, index, generation in calls:
        pod = pods[generation - 1]
        results = []
        # Only the first node gets the same object again.
        for node, pod_or_copy in zip(nodes, (pod, structs.replace(pod)), strict=True):
            manager, result = node.manager, None
            match call:
                case "status":
                    result = manager.set_pod_status(pod_or_copy, STATUSES[index])
                case "readiness":
                    manager.set_container_readiness(pod.uid, "fake://app", ready=index == 1)
                case "terminate":
                    manager.terminate_pod(pod_or_copy)
                case "remove":
                    manager.remove_status(pod.uid)
                case "time":
                    node.advance(1)
            results.append((result, manager.entries(), node.observer.terminations))
        assert results[0] == results[1]


# Termination


def test_a_terminated_pod_is_finished_and_failed() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.manager.terminate_pod(pod)
    entry = node.entry(pod)
    assert (entry.version, entry.finished, entry.status.phase) == (2, True, "Failed")
    terminated = containers(entry.status)["app"].state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.reason) == (137, "ContainerStatusUnknown")
    assert node.observer.terminations == {
        Termination(ContainerType.REGULAR, 137, "ContainerStatusUnknown"): 1
    }


def test_terminating_again_is_a_new_version() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.terminate_pod(pod)
    node.manager.terminate_pod(pod)
    assert node.entry(pod).version == 2


def test_an_uncached_pod_is_terminated_from_its_own_status() -> None:
    pod = make_pod(status=make_status("Running", ended("app", 3)))
    node = Node(pod)
    node.manager.terminate_pod(pod)
    terminated = containers(node.entry(pod).status)["app"].state.terminated
    assert terminated is not None
    assert terminated.exit_code == 3


@pytest.mark.parametrize(("policy", "finished"), [("Never", False), ("Always", True)])
def test_surprise_17_termination_is_refused_when_init_statuses_do_not_match_by_index(
    *, policy: str, finished: bool
) -> None:
    pod = make_pod(init_containers=("one",), restart_policy=policy)
    node = Node(pod)
    odd = PodStatus(phase="Running", init_container_statuses=(waiting("two"),))
    node.manager.set_pod_status(pod, odd)
    node.manager.terminate_pod(pod)
    assert node.entry(pod).finished is finished
    assert node.entry(pod).status.phase == ("Failed" if finished else "Running")


def test_surprise_18_initialized_is_judged_by_the_pod_passed_in() -> None:
    cached = PodStatus(
        phase="Running",
        init_container_statuses=(ended("init"),),
        container_statuses=(running("app"),),
    )
    for shown, lost in ((PodStatus(), False), (cached, True)):
        pod = make_pod(init_containers=("init",), status=shown)
        node = Node(pod)
        node.manager.set_pod_status(pod, cached)
        node.manager.terminate_pod(pod)
        state = containers(node.entry(pod).status)["app"].state
        assert (state.terminated is not None) is lost


def test_surprise_19_an_uncached_static_pod_is_terminated_from_its_own_empty_status() -> None:
    mirror = structs.replace(MIRROR, status=make_status("Running", running("app")))
    node = Node(STATIC, mirror)
    node.manager.terminate_pod(STATIC)
    node.sync()
    (body,) = node.patches()
    assert body["status"]["phase"] is None
    assert body["status"]["containerStatuses"] is None


@pytest.mark.parametrize(("pod", "sticky"), [(make_pod(), True), (STATIC, False)])
def test_surprise_20_finished_is_sticky_except_for_static_pods(*, pod: Pod, sticky: bool) -> None:
    node = Node(pod)
    node.manager.terminate_pod(pod)
    node.manager.set_pod_status(pod, make_status("Running", waiting("app")))
    assert node.entry(pod).finished is sticky


# Orphans


def test_orphans_are_forgotten_and_the_others_stay() -> None:
    kept, gone = make_pod("kept"), make_pod("gone")
    node = Node(kept, gone)
    for pod in (kept, gone):
        node.manager.set_pod_status(pod, RUNNING)
    node.manager.remove_orphaned_statuses(iter([kept.uid, "uid-other"]))
    assert node.manager.entries().keys() == {kept.uid}
    assert node.startup_latency.deleted == []
