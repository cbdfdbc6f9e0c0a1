"""How long updates wait until the API server has them."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.versioned_status import MAX_UNSENT, VersionedStatus, next_version
from podstatus.testing.builders import make_pod, make_static_pod, make_status
from podstatus.testing.clock import run_ready_tasks
from podstatus.testing.fakes import RecordingNotifier
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.support.status_node import HangingApi, Node, deleting, in_loop

PENDING, RUNNING, FAILED = make_status("Pending"), make_status("Running"), make_status("Failed")
SECOND = 1_000_000_000
LONG = 10.0
"""Seconds: timeout for things that happen immediately."""


def test_it_is_measured_from_the_update_to_its_acknowledgement() -> None:
    pod = make_pod()
    node = Node(pod)
    node.advance(7)
    node.manager.set_pod_status(pod, RUNNING)
    node.advance(2.5)
    assert node.observer.sync_durations == []
    node.sync()
    assert node.observer.sync_durations == [2.5]


def test_of_several_updates_before_one_send_the_oldest_counts() -> None:
    pod = make_pod()
    node = Node(pod)
    for status in (PENDING, RUNNING, FAILED):
        node.manager.set_pod_status(pod, status)
        node.advance(1)
    node.sync()
    assert node.observer.sync_durations == [3.0]


def test_an_update_after_an_acknowledgement_is_measured_from_itself() -> None:
    pod = make_pod()
    node = Node(pod)
    for status, seconds in ((PENDING, 1), (RUNNING, 2), (FAILED, 3)):
        node.advance(100)
        node.manager.set_pod_status(pod, status)
        node.advance(seconds)
        node.sync()
    assert node.observer.sync_durations == [1.0, 2.0, 3.0]


def test_an_update_that_changes_nothing_does_not_begin_to_wait() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.sync()
    node.advance(50)
    node.manager.set_pod_status(pod, RUNNING)
    node.advance(50)
    node.manager.set_pod_status(pod, FAILED)
    node.sync()
    assert node.observer.sync_durations == [0.0, 0.0]


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_a_failed_send_keeps_the_time(verb: str) -> None:
    pod = make_pod()
    node = Node(pod)
    node.api.fail(verb, "default", "pod", code=503, times=2)
    node.manager.set_pod_status(pod, PENDING)
    node.sync()
    node.advance(4)
    node.manager.set_pod_status(pod, RUNNING)
    node.sync()
    assert node.observer.sync_durations == []
    node.advance(4)
    node.sync()
    assert node.observer.sync_durations == [8.0]


def test_a_server_that_is_right_already_acknowledges_too() -> None:
    pod = make_pod()
    node = Node(pod)
    status, _ = node.manager.set_pod_status(pod, RUNNING)
    node.api.put(structs.replace(pod, status=status))
    node.advance(3)
    assert node.sync() == ["get pod"]
    assert node.observer.sync_durations == [3.0]


def test_a_reconcile_of_what_was_sent_is_not_measured() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.sync()
    node.observer.sync_durations.clear()
    node.advance(30)
    node.api.patch("default", "pod", {"status": {"phase": "Unknown"}})
    node.observe(pod)
    assert node.sync(full=True) == ["get pod", "patch pod"]
    assert node.observer.sync_durations == []


def test_a_retried_delete_is_not_measured() -> None:
    pod = deleting(make_pod())
    node = Node(pod)
    node.api.fail("delete", "default", "pod", code=503, times=1)
    node.manager.terminate_pod(pod)
    node.advance(1)
    assert node.sync() == ["get pod", "patch pod", "delete pod 503"]
    node.observe(pod)
    node.advance(10)
    assert node.sync(full=True) == ["get pod", "delete pod"]
    assert node.observer.sync_durations == [1.0]


def test_a_removed_status_leaves_no_time_behind() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, PENDING)
    node.advance(60)
    node.manager.remove_orphaned_statuses(())
    node.manager.set_pod_status(pod, RUNNING)
    node.advance(1)
    node.sync()
    assert node.observer.sync_durations == [1.0]


def test_a_status_dropped_because_its_name_is_another_pods_is_not_measured() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.api.put(make_pod(uid="another"))
    node.sync()
    assert node.observer.sync_durations == []


def test_a_static_pod_waits_for_its_mirror_and_that_counts() -> None:
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    node = Node(static)
    node.manager.set_pod_status(static, RUNNING)
    node.advance(6)
    assert node.sync() == []
    node.api.put(mirror)
    node.directory.update_pod(mirror)
    node.sync()
    node.advance(9)
    node.manager.set_pod_status(static, FAILED)
    node.advance(2)
    node.sync()
    assert node.observer.sync_durations == [6.0, 2.0]


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_jump_of_the_wall_clock_does_not_change_the_duration(seconds: int) -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.clock.step(seconds)
    node.advance(2)
    node.sync()
    assert node.observer.sync_durations == [2.0]


# During a send


class UpdatingApi(InMemoryPodApi):
    """Changes the status during a patch."""

    node: Node

    def __init__(self, *meanwhile: PodStatus | None) -> None:
        super().__init__()
        self.meanwhile = list(meanwhile)

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        while self.meanwhile:
            status = self.meanwhile.pop(0)
            await self.node.clock.advance(1)
            if status is None:
                self.node.manager.remove_orphaned_statuses(())
            else:
                self.node.manager.set_pod_status(make_pod(), status)
        await self.node.clock.advance(1)
        return await super().patch_pod_status(namespace, name, patch)


@pytest.mark.parametrize(
    ("meanwhile", "sent", "then"),
    [
        pytest.param([RUNNING], 2.0, 6.0, id="one"),
        pytest.param([RUNNING, FAILED], 3.0, 7.0, id="of several the oldest"),
        pytest.param([None, RUNNING], 3.0, 6.0, id="of a new life under the same version"),
    ],
)
def test_an_update_during_a_send_waits_from_its_own_time(
    meanwhile: list[PodStatus | None], sent: float, then: float
) -> None:
    pod, api = make_pod(), UpdatingApi(*meanwhile)
    api.node = node = Node(pod, api=api)
    node.manager.set_pod_status(pod, PENDING)
    node.sync()
    assert node.observer.sync_durations == [sent]
    node.observe(pod)
    node.advance(4)
    node.sync(full=True)
    assert node.observer.sync_durations == [sent, then]


def test_a_pod_removed_during_its_send_is_measured_and_does_not_come_back() -> None:
    pod, api = make_pod(), UpdatingApi(None)
    api.node = node = Node(pod, api=api)
    node.manager.set_pod_status(pod, PENDING)
    node.sync()
    assert node.observer.sync_durations == [2.0]
    assert node.manager.entries() == {}


async def test_the_running_loop_measures_each_send() -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    async with in_loop(node):
        node.manager.set_pod_status(pod, PENDING)
        await run_ready_tasks()
        await node.clock.advance(1)
        node.manager.set_pod_status(pod, RUNNING)
        await node.clock.advance(2)
        api.answers.set()
        await run_ready_tasks()
        assert node.observer.sync_durations == [3.0, 2.0]
        await node.clock.advance(60)
        assert node.observer.sync_durations == [3.0, 2.0]


async def test_an_outage_counts_in_full_in_the_running_loop() -> None:
    pod = make_pod()
    node = Node(pod)
    node.api.fail("get", "default", "pod", code=503, times=3)
    async with in_loop(node):
        await node.clock.advance(4)
        node.manager.set_pod_status(pod, RUNNING)
        await node.clock.advance(60)
        assert node.observer.sync_durations == [26.0]


# Isolation of the cache


def test_an_acknowledgement_changes_neither_version_nor_status() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    before = node.entry(pod)
    node.sync()
    after = node.entry(pod)
    assert (after.version, after.status) == (before.version, before.status)
    assert (len(before.unsent), after.unsent) == (1, ())


class SlowNotifier(RecordingNotifier):
    """Blocks until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.leave = threading.Event(), threading.Event()

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        self.entered.set()
        assert self.leave.wait(LONG)


def test_a_slow_listener_does_not_hold_up_the_sync_and_nothing_is_lost() -> None:
    pod, slow = make_pod(), SlowNotifier()
    node = Node(pod)
    node.manager.add_notifier(slow)
    caller = threading.Thread(target=node.manager.set_pod_status, args=(pod, RUNNING))
    caller.start()
    assert slow.entered.wait(LONG)
    assert node.sync() == ["get pod", "patch pod"]
    assert node.observer.sync_durations == []
    slow.leave.set()
    caller.join(LONG)
    assert node.observer.sync_durations == [0.0]


# Unsent updates of an entry


def update(entry: VersionedStatus | None, seconds: int) -> VersionedStatus:
    return next_version(entry, make_pod(), RUNNING, finished=False, monotonic=seconds * SECOND)


def test_an_outage_does_not_fill_the_memory_and_keeps_the_oldest_time() -> None:
    entry = update(None, 1)
    for second in range(2, 1000):
        entry = update(entry, second)
    assert len(entry.unsent) == MAX_UNSENT
    assert entry.unsent_seconds(1000 * SECOND) == 999.0


@given(st.lists(st.sampled_from(["update", "send", "fail", "acknowledge"])))
def test_what_waits_is_what_came_after_the_last_entry_acknowledged(events: list[str]) -> None:
    """A model that records when every version was cached."""
    entry: VersionedStatus | None = None
    times, acknowledged, sending = list[int](), 0, None
    for now, event in enumerate(events):
        if event == "update":
            times.append(now)
            entry = update(entry, now)
        elif event == "send":
            sending = sending or entry
        elif event == "fail":
            sending = None
        elif sending is not None and entry is not None:
            entry = entry.acknowledged(sending)
            acknowledged, sending = sending.version, None
        waiting = times[acknowledged:]
        if entry is not None and len(waiting) <= MAX_UNSENT:
            seconds = entry.unsent_seconds(now * SECOND)
            assert seconds == (now - waiting[0] if waiting else None)
