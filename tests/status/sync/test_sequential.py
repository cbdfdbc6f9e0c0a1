import asyncio
import logging
import re
from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.status.policy import SyncPolicy
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.support.status_node import Node, condition_of

STATIC, MIRROR = make_static_pod(), make_static_pod(mirror=True)
RUNNING = make_status("Running", running("app"), Ready="True")
FAILED = make_status("Failed", ended("app", 1), Ready="False")


def running_node(pod: Pod, *, could_run: bool = False) -> Node:
    """Return a node with a running, synced pod; the pod manager has the API server's copy."""
    node = Node(pod)
    node.safety.table[pod.uid] = could_run
    node.manager.set_pod_status(pod, RUNNING)
    node.sync()
    node.observe(pod)
    return node


# Success


def test_a_new_status_is_read_patched_and_remembered_as_sent() -> None:
    pod = make_pod()
    node = Node(pod)
    status, _ = node.manager.set_pod_status(pod, RUNNING)
    assert node.sync() == ["get pod", "patch pod"]
    assert node.stored(pod).status == status
    assert node.sent == {pod.uid: 1}
    assert node.startup_latency.updated == [pod.uid]


def test_a_status_that_was_sent_is_not_sent_again() -> None:
    node = running_node(make_pod())
    assert node.sync() == []
    assert node.sync(full=True) == []


def test_only_the_newest_of_several_versions_is_sent() -> None:
    pod = make_pod()
    node = Node(pod)
    for phase in ("Pending", "Running", "Failed"):
        node.manager.set_pod_status(pod, make_status(phase))
    assert node.sync() == ["get pod", "patch pod"]
    assert node.stored(pod).status.phase == "Failed"
    assert node.sent == {pod.uid: 3}


def test_nothing_is_patched_when_the_server_is_right_already() -> None:
    pod = running_node(make_pod()).stored(make_pod())
    again = Node(pod)
    again.manager.set_pod_status(pod, pod.status)
    assert again.sync() == ["get pod"]
    assert again.sent == {"uid-pod": 1}
    assert again.startup_latency.updated == []


def test_conditions_of_others_survive() -> None:
    pod = make_pod()
    node = Node(pod)
    node.api.patch("default", "pod", {"status": {"conditions": [{"type": "x", "status": "True"}]}})
    node.manager.set_pod_status(pod, RUNNING)
    node.sync()
    assert [c.type for c in node.stored(pod).status.conditions or ()] == ["x", "Ready"]


def test_a_foreign_write_is_undone_by_the_reconcile() -> None:
    pod = make_pod()
    node = running_node(pod)
    node.api.patch("default", "pod", {"status": {"phase": "Succeeded"}})
    assert node.sync() == []
    node.observe(pod)
    assert node.sync(full=True) == ["get pod", "patch pod"]
    assert node.stored(pod).status.phase == "Running"


# Failures


@pytest.mark.parametrize("verb", ["get", "patch"])
@pytest.mark.parametrize("code", [404, 409, 429, 500, 422])
def test_what_failed_stays_unsent_and_is_tried_again(verb: str, code: int) -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.api.fail(verb, "default", "pod", code=code)
    assert node.sync()[-1] == f"{verb} pod {code}"
    assert node.sent == {}
    assert node.manager.pod_status(pod.uid) is not None
    assert node.sync() == ["get pod", "patch pod"]


def test_surprise_4_a_missing_pod_stays_pending_and_every_batch_tries_again() -> None:
    pod = make_pod()
    node = Node(pod)
    node.api.remove("default", "pod")
    node.manager.set_pod_status(pod, RUNNING)
    for full in (False, False, True):
        assert node.sync(full=full) == ["get pod 404"]
    assert node.manager.pod_status(pod.uid) is not None


def test_surprise_4_a_batch_counts_tries_not_successes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = [make_pod(name) for name in "abc"]
    node = Node(*pods)
    node.api.remove("default", "a")
    node.api.fail("patch", "default", "b", code=500)
    for pod in pods:
        node.manager.set_pod_status(pod, RUNNING)
    caplog.set_level(logging.DEBUG, "podstatus")
    assert len([call for call in node.sync() if call.startswith("get")]) == 3
    assert node.sent == {"uid-c": 1}
    lines = [re.split(" error=| patch=", record.message)[0] for record in caplog.records]
    assert list(zip([record.levelname for record in caplog.records], lines, strict=True)) == [
        ("DEBUG", "pod does not exist on the API server: pod=default/a uid=uid-a"),
        ("DEBUG", "patching status: pod=default/b uid=uid-b"),
        ("WARNING", "cannot sync pod status, will retry: pod=default/b uid=uid-b"),
        ("DEBUG", "patching status: pod=default/c uid=uid-c"),
        ("INFO", "pod status sent: pod=default/c uid=uid-c status_version=1"),
    ]


class BrokenSafety:
    def could_have_running_containers(self, pod: Pod) -> bool:
        if pod.name == "a":
            raise OSError("no runtime")
        return False


class BrokenApi(InMemoryPodApi):
    """Raises an error, or returns a value, that violates the port."""

    def __init__(self, broken: Any) -> None:
        super().__init__()
        self.broken = broken

    async def get_pod(self, namespace: str, name: str) -> Pod:
        if name != "a":
            return await super().get_pod(namespace, name)
        if isinstance(self.broken, BaseException):
            raise self.broken
        answer: Pod = self.broken
        return answer


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        pytest.param(ZeroDivisionError(), "ZeroDivisionError", id="raises"),
        pytest.param({"kind": "Pod"}, "get_pod of the client returned a dict", id="no pod"),
        pytest.param(
            asyncio.CancelledError(), "the client cancelled the request", id="cancels itself"
        ),
    ],
)
def test_a_port_that_raises_during_a_sync_does_not_stop_the_others(
    broken: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    pods = [make_pod("a"), make_pod("b")]
    node = Node(*pods, api=BrokenApi(broken))
    for pod in pods:
        node.manager.set_pod_status(pod, RUNNING)
    assert node.sync() == ["get b", "patch b"]
    assert node.sent == {"uid-b": 1}
    node.sync()
    assert caplog.text.count("cannot sync pod status, will retry: pod=default/a uid=uid-a") == 2
    assert why in caplog.text


def test_a_patch_that_answers_with_no_pod_is_not_taken_for_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class WrongApi(InMemoryPodApi):
        async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
            await super().patch_pod_status(namespace, name, patch)
            answer: Any = {"kind": "Pod"}
            wrong: Pod = answer
            return wrong

    pod = make_pod()
    node = Node(pod, api=WrongApi())
    node.manager.set_pod_status(pod, RUNNING)
    node.sync()
    assert node.sent == {}
    assert "patch_pod_status of the client returned a dict" in caplog.text


def test_a_deletion_safety_that_raises_does_not_stop_the_others() -> None:
    pods = [make_pod("a"), make_pod("b")]
    node = Node(*pods, safety=BrokenSafety())
    for pod in pods:
        node.manager.set_pod_status(pod, RUNNING)
    assert node.sync() == ["get a", "get b", "patch b"]


# Delays


def test_surprise_1_a_delayed_terminal_phase_counts_as_sent_until_a_reconcile_sees_it() -> None:
    pod = make_pod()
    node = running_node(pod, could_run=True)
    node.manager.set_pod_status(pod, FAILED)
    assert node.sync() == ["get pod", "patch pod"]
    assert node.stored(pod).status.phase == "Running"
    assert node.sent == {pod.uid: 2}

    node.safety.table[pod.uid] = False
    assert node.sync() == []
    node.observe(pod)
    assert node.sync(full=True) == ["get pod", "patch pod"]
    assert node.stored(pod).status.phase == "Failed"


def test_surprise_1_a_directory_that_shows_the_terminal_phase_is_not_reconciled() -> None:
    pod = make_pod()
    node = running_node(pod, could_run=True)
    node.manager.set_pod_status(pod, FAILED)
    node.sync()
    node.safety.table[pod.uid] = False
    ours = node.entry(pod).status
    node.directory.update_pod(structs.replace(node.stored(pod), status=ours))
    assert node.sync(full=True) == []


def test_surprise_2_while_delayed_containers_and_conditions_go_out() -> None:
    pod = make_pod()
    node = running_node(pod, could_run=True)
    node.manager.set_pod_status(pod, structs.replace(FAILED, reason="Evicted", message="why"))
    node.sync()
    stored = node.stored(pod).status
    assert (stored.phase, stored.reason, stored.message) == ("Running", "", "")
    assert stored.container_statuses == node.entry(pod).status.container_statuses
    assert condition_of(stored, "Ready").status == "False"


# Versions


def test_surprise_3_a_status_that_starts_over_is_not_sent_until_a_full_batch() -> None:
    pod = make_pod()
    node = running_node(pod)
    node.manager.remove_orphaned_statuses(set())
    assert node.sent == {pod.uid: 1}
    node.manager.set_pod_status(pod, FAILED)
    assert node.entry(pod).version == 1
    assert node.sync() == []
    assert node.sync(full=True) == ["get pod", "patch pod"]


def test_surprise_3_a_full_batch_forgets_the_versions_of_pods_that_are_gone() -> None:
    pod = make_pod()
    node = running_node(pod)
    node.manager.remove_orphaned_statuses(set())
    assert node.sync(full=True) == []
    assert node.sent == {}
    node.manager.set_pod_status(pod, FAILED)
    assert node.sync() == ["get pod", "patch pod"]


# Permanent differences


def test_surprise_5_a_disruption_target_that_cannot_be_sent_is_read_every_time() -> None:
    pod = make_pod()
    node = running_node(pod)
    target = PodCondition(type="DisruptionTarget", status="True")
    status = structs.replace(RUNNING, conditions=(*(RUNNING.conditions or ()), target))
    node.manager.set_pod_status(pod, status)
    node.sync()
    for _ in range(3):
        node.observe(pod)
        assert node.sync(full=True) == ["get pod"]


def test_surprise_5_a_message_cut_inside_a_character_is_read_every_time() -> None:
    pod = make_pod()
    node = running_node(pod)
    node.manager.set_pod_status(
        pod, make_status("Running", ended("app", message="x" * 12287 + "€"))
    )
    node.sync()
    for _ in range(3):
        node.observe(pod)
        assert node.sync(full=True) == ["get pod"]


def test_surprise_5_ready_in_a_terminal_phase_is_patched_whenever_the_clock_moved() -> None:
    pod = make_pod()
    node = running_node(pod)
    node.manager.set_pod_status(pod, make_status("Failed", ended("app", 1), Ready="True"))
    node.sync()
    node.observe(pod)
    assert node.sync(full=True) == ["get pod"]
    for _ in range(3):
        node.advance(10)
        node.observe(pod)
        assert node.sync(full=True) == ["get pod", "patch pod"]
        (body,) = node.patches()
        now = node.now.wire
        assert body["status"]["conditions"] == [
            {"type": "Ready", "lastTransitionTime": now},
            {"type": "ContainersReady", "lastTransitionTime": now},
        ]


# Static pods


def test_a_static_pod_is_sent_to_its_mirror() -> None:
    node = Node(STATIC, MIRROR)
    node.manager.set_pod_status(STATIC, RUNNING)
    assert node.sync() == ["get static", "patch static"]
    assert node.sent == {MIRROR.uid: 1}
    assert [body["metadata"]["uid"] for body in node.patches()] == [MIRROR.uid]


def test_a_static_pod_is_sent_as_soon_as_it_has_a_mirror() -> None:
    node = Node(STATIC)
    node.manager.set_pod_status(STATIC, RUNNING)
    assert node.sync(full=True) == []
    node.api.put(MIRROR)
    node.directory.update_pod(MIRROR)
    assert node.sync() == ["get static", "patch static"]


def test_surprise_6_a_mirror_recreated_unseen_drops_the_status_of_the_static_pod() -> None:
    node = Node(STATIC, MIRROR)
    node.manager.set_pod_status(STATIC, RUNNING)
    node.manager.set_pod_resize_pending_condition(STATIC.uid, "Deferred", "", 1)
    node.api.put(make_static_pod(mirror=True, uid="mirror-2"))
    assert node.sync() == ["get static"]
    assert node.manager.pod_status(STATIC.uid) is None
    assert node.manager.pod_resize_conditions(STATIC.uid) == ()
    assert node.observer.pending == {}
    assert node.startup_latency.deleted == [STATIC.uid]


def test_a_pod_recreated_under_its_name_drops_the_status_of_the_old_one() -> None:
    old, new = make_pod(uid="old"), make_pod(uid="new")
    node = Node(old)
    node.manager.set_pod_status(old, RUNNING)
    node.api.put(new)
    assert node.sync() == ["get pod"]
    assert node.manager.pod_status("old") is None
    assert node.stored(new).status == PodStatus()


def test_surprise_7_deletion_safety_is_asked_about_the_mirror() -> None:
    node = Node(STATIC, MIRROR)
    node.safety.table[STATIC.uid] = True
    node.manager.set_pod_status(STATIC, FAILED)
    node.sync()
    assert node.stored(MIRROR).status.phase == "Failed"

    node = Node(STATIC, MIRROR)
    node.safety.table[MIRROR.uid] = True
    node.manager.set_pod_status(STATIC, FAILED)
    node.sync()
    assert node.stored(MIRROR).status.phase == ""


def test_a_mirror_pod_is_never_deleted() -> None:
    node = Node(STATIC, MIRROR)
    node.manager.set_pod_status(STATIC, FAILED)
    node.manager.terminate_pod(STATIC)
    node.api.request_deletion("kube-system", "static", at="2024-01-01T00:00:00Z")
    node.directory.update_pod(node.stored(MIRROR))
    assert node.sync() == ["get static", "patch static"]
    node.directory.update_pod(node.stored(MIRROR))
    assert node.sync(full=True) == []


# Deletion


def ended_node() -> tuple[Node, Pod]:
    """Return a node with a finished pod whose deletion was requested; nothing is sent yet."""
    node = running_node(make_pod())
    node.api.request_deletion("default", "pod", at="2024-01-01T00:00:00Z")
    pod = node.observe(make_pod())
    node.manager.set_pod_status(pod, FAILED)
    node.manager.terminate_pod(pod)
    return node, pod


def test_surprise_8_the_delete_follows_in_the_same_sync_as_the_terminal_patch() -> None:
    node, pod = ended_node()
    assert pod.status.phase == "Running"
    assert node.sync() == ["get pod", "patch pod", "delete pod"]
    delete = node.api.calls[-1]
    assert (delete.uid, delete.grace_period_seconds) == (pod.uid, 0)
    assert node.api.pods() == []
    assert node.manager.pod_status(pod.uid) is None
    assert node.startup_latency.deleted == [pod.uid]


def test_surprise_8_a_failed_delete_is_tried_again_by_a_full_batch_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node, pod = ended_node()
    node.api.fail("delete", "default", "pod", code=500)
    assert node.sync() == ["get pod", "patch pod", "delete pod 500"]
    assert "cannot delete pod, the next full sync will retry: pod=default/pod" in caplog.text
    node.observe(pod)
    assert node.sync() == []
    assert node.sync(full=True) == ["get pod", "delete pod"]
    assert node.manager.pod_status(pod.uid) is None


def test_a_pod_whose_end_is_held_back_is_not_deleted_yet() -> None:
    node, pod = ended_node()
    node.safety.table[pod.uid] = True
    assert node.sync() == ["get pod", "patch pod"]
    node.safety.table[pod.uid] = False
    node.observe(pod)
    assert node.sync(full=True) == ["get pod", "patch pod", "delete pod"]


def test_a_pod_that_is_not_finished_is_not_deleted() -> None:
    node = running_node(make_pod())
    node.api.request_deletion("default", "pod", at="2024-01-01T00:00:00Z")
    pod = node.observe(make_pod())
    node.manager.set_pod_status(pod, FAILED)
    assert node.sync() == ["get pod", "patch pod"]
    node.observe(pod)
    assert node.sync(full=True) == []


# DisruptionTarget


@pytest.mark.parametrize(
    ("policy", "restamp"),
    [(SyncPolicy.upstream(), True), (SyncPolicy(restamp_cached_disruption=False), False)],
)
def test_surprise_9_disruption_target_is_restamped_in_the_cache_without_a_new_version(
    *, policy: SyncPolicy, restamp: bool
) -> None:
    pod = make_pod()
    node = Node(pod, policy=policy)
    decided = node.now
    node.manager.set_pod_status(pod, make_status("Failed", waiting("app"), DisruptionTarget="True"))
    node.advance(5)
    node.sync()
    sent = condition_of(node.stored(pod).status, "DisruptionTarget")
    cached = condition_of(node.entry(pod).status, "DisruptionTarget")
    assert sent.last_transition_time == node.now
    assert cached.last_transition_time == (node.now if restamp else decided)
    assert node.entry(pod).version == 1


class InterruptedApi(InMemoryPodApi):
    node: Node

    async def get_pod(self, namespace: str, name: str) -> Pod:
        pod = await super().get_pod(namespace, name)
        self.node.manager.set_pod_status(pod, make_status("Failed", Ready="False"))
        return pod


def test_surprise_9_a_status_that_came_meanwhile_is_not_overwritten() -> None:
    pod = make_pod()
    api = InterruptedApi()
    node = api.node = Node(pod, api=api)
    node.manager.set_pod_status(pod, make_status("Failed", DisruptionTarget="True"))
    node.sync()
    assert node.entry(pod).version == 2
    assert [c.type for c in node.entry(pod).status.conditions or ()] == ["Ready"]
    assert node.sent == {pod.uid: 1}
