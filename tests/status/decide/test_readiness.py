from collections.abc import Callable

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodReadinessGate
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.testing.builders import make_pod, make_static_pod, make_status, running
from tests.support.status_node import Node, condition_of

STATIC, MIRROR = make_static_pod(), make_static_pod(mirror=True)
RUNNING = make_status("Running", running("app"), Ready="True")


def containers(status: PodStatus) -> dict[str, ContainerStatus]:
    return {container.name: container for container in status.container_statuses or ()}


def unready_node(*more: ContainerStatus, **conditions: str) -> tuple[Node, Pod]:
    pod = make_pod()
    node = Node(pod)
    status = make_status("Running", running("app", ready=False), *more, **conditions)
    node.manager.set_pod_status(pod, status)
    node.manager.pop_changes()
    return node, pod


def test_a_ready_container_makes_the_pod_ready() -> None:
    node, pod = unready_node(Ready="False", ContainersReady="False")
    node.advance(5)
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    status = node.entry(pod).status
    assert containers(status)["app"].ready
    for condition_type in ("Ready", "ContainersReady"):
        condition = condition_of(status, condition_type)
        assert (condition.status, condition.last_transition_time) == ("True", node.now)
    assert node.manager.pop_changes()


def test_a_verdict_touches_its_container_only() -> None:
    pod = make_pod(containers=("a", "b", "c"))
    node = Node(pod)
    three = (running("a"), running("b"), running("c"))
    node.manager.set_pod_status(pod, make_status("Running", *three))
    node.manager.set_container_readiness(pod.uid, "fake://b", ready=False)
    expected = (three[0], structs.replace(three[1], ready=False), three[2])
    assert node.entry(pod).status.container_statuses == expected


def test_an_unready_container_is_named_in_both_conditions() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=False)
    for condition_type in ("Ready", "ContainersReady"):
        condition = condition_of(node.entry(pod).status, condition_type)
        assert (condition.status, condition.reason, condition.message) == (
            "False",
            "ContainersNotReady",
            "containers with unready status: [app]",
        )


def test_readiness_gates_keep_a_pod_with_ready_containers_unready() -> None:
    pod = make_pod()
    gates = (PodReadinessGate(condition_type="x"),)
    pod = structs.replace(pod, spec=structs.replace(pod.spec, readiness_gates=gates))
    node = Node(pod)
    node.manager.set_pod_status(pod, make_status("Running", running("app", ready=False)))
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    status = node.entry(pod).status
    assert condition_of(status, "Ready").reason == "ReadinessGatesNotReady"
    assert condition_of(status, "ContainersReady").status == "True"


def test_surprise_24_a_readiness_change_replaces_the_whole_condition() -> None:
    pod = make_pod()
    node = Node(pod)
    ready = PodCondition(
        type="Ready", status="False", last_probe_time=node.now, observed_generation=7
    )
    status = make_status("Running", running("app", ready=False))
    node.manager.set_pod_status(pod, structs.replace(status, conditions=(ready,)))
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    after = condition_of(node.entry(pod).status, "Ready")
    assert (after.last_probe_time, after.observed_generation) == (Time(), 0)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, ["Ready", "ContainersReady"]),
        ({"ContainersReady": "False", "x": "True"}, ["ContainersReady", "x", "Ready"]),
    ],
)
def test_surprise_24_missing_conditions_are_appended_ready_first(
    conditions: dict[str, str], expected: list[str]
) -> None:
    node, pod = unready_node(**conditions)
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    assert [c.type for c in node.entry(pod).status.conditions or ()] == expected


Verdict = Callable[[Node, str, str], None]


def ready(node: Node, uid: str, container_id: str) -> None:
    node.manager.set_container_readiness(uid, container_id, ready=True)


def started(node: Node, uid: str, container_id: str) -> None:
    node.manager.set_container_startup(uid, container_id, started=False)


@pytest.mark.parametrize("verdict", [ready, started])
def test_surprise_24_ephemeral_containers_are_never_found(verdict: Verdict) -> None:
    pod = make_pod()
    node = Node(pod)
    debug = running("debug", ready=False)
    node.manager.set_pod_status(pod, PodStatus(ephemeral_container_statuses=(debug,)))
    verdict(node, pod.uid, "fake://debug")
    assert node.entry(pod).version == 1


@pytest.mark.parametrize("verdict", [ready, started])
def test_sidecars_are_found(verdict: Verdict) -> None:
    pod = make_pod(init_containers=("sidecar",))
    node = Node(pod)
    sidecar = running("sidecar", ready=False)
    node.manager.set_pod_status(pod, PodStatus(init_container_statuses=(sidecar,)))
    verdict(node, pod.uid, "fake://sidecar")
    (after,) = node.entry(pod).status.init_container_statuses or ()
    assert (after.ready, after.started) == ((True, True) if verdict is ready else (False, False))


@pytest.mark.parametrize("verdict", [ready, started])
@pytest.mark.parametrize(
    ("uid", "container_id"),
    [
        pytest.param("uid-pod", "fake://other", id="unknown container"),
        pytest.param("uid-unknown", "fake://app", id="unknown pod"),
        pytest.param("uid-uncached", "fake://app", id="pod without a status"),
    ],
)
def test_a_verdict_about_something_unknown_changes_nothing(
    verdict: Verdict, uid: str, container_id: str
) -> None:
    node, pod = unready_node()
    node.directory.update_pod(make_pod("uncached"))
    verdict(node, uid, container_id)
    assert node.manager.entries().keys() == {pod.uid}
    assert node.entry(pod).version == 1


def test_a_verdict_under_the_uid_of_a_mirror_changes_nothing() -> None:
    node = Node(STATIC, MIRROR)
    node.manager.set_pod_status(STATIC, make_status("Running", running("app", ready=False)))
    ready(node, MIRROR.uid, "fake://app")
    assert node.entry(STATIC).version == 1
    ready(node, STATIC.uid, "fake://app")
    assert node.entry(STATIC).version == 2


def test_a_verdict_that_is_no_news_changes_nothing() -> None:
    node, pod = unready_node()
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=False)
    node.manager.set_container_startup(pod.uid, "fake://app", started=True)
    assert node.entry(pod).version == 1


@pytest.mark.parametrize(
    ("before", "given"), [(None, True), (None, False), (False, True), (True, False)]
)
def test_startup_sets_the_container_and_no_condition(*, before: bool | None, given: bool) -> None:
    pod = make_pod()
    node = Node(pod)
    app = structs.replace(running("app"), started=before)
    node.manager.set_pod_status(pod, make_status("Running", app))
    node.manager.set_container_startup(pod.uid, "fake://app", started=given)
    status = node.entry(pod).status
    assert containers(status)["app"].started is given
    assert not status.conditions
