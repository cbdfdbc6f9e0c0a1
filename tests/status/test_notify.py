import inspect
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.decide.update import Termination
from podstatus.status.manager import StatusManager
from podstatus.status.notify import CallbackQueue
from podstatus.testing.builders import ended, make_pod, make_status, running
from podstatus.testing.fakes import (
    CountingObserver,
    FakeDeletionSafety,
    NotifierCall,
    RecordingNotifier,
)
from tests.support.status_node import Node, deleting

RUNNING, FAILED = make_status("Running"), make_status("Failed")
LONG = 10.0
"""Seconds: timeout for things that happen immediately."""


def phases(notifier: RecordingNotifier) -> list[str | None]:
    """Return the notified phases in order; None for a removed pod."""
    return [None if call.status is None else call.status.phase for call in notifier.calls]


def test_a_first_status_is_added_and_later_ones_are_updates() -> None:
    pod = make_pod()
    node = Node(pod)
    first, _ = node.manager.set_pod_status(pod, RUNNING)
    second, _ = node.manager.set_pod_status(pod, FAILED)
    assert node.notifier.calls == [
        NotifierCall(pod.uid, first, True),
        NotifierCall(pod.uid, second, False),
    ]


def test_an_equal_status_is_not_notified() -> None:
    pod = make_pod(restart_policy="Never")
    node = Node(pod)
    node.manager.set_pod_status(pod, make_status("Running", ended("app")))
    node.notifier.calls.clear()
    node.manager.set_pod_status(pod, make_status("Running", ended("app")))
    node.manager.set_pod_status(pod, make_status("Running", running("app")))
    node.manager.remove_orphaned_statuses(set())
    assert node.notifier.calls == []


def test_a_terminated_pod_is_removed() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.terminate_pod(pod)
    assert node.notifier.calls == [NotifierCall(pod.uid)]


def test_surprise_20_once_finished_every_update_tells_removed() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.manager.terminate_pod(pod)
    node.manager.set_pod_status(pod, make_status("Succeeded"))
    assert phases(node.notifier) == ["Running", None, None]


def test_surprise_16_a_pod_that_is_being_deleted_is_never_added() -> None:
    pod = deleting(make_pod())
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    assert [call.is_added for call in node.notifier.calls] == [False]


def test_probes_tell_too() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, make_status("Running", running("app", ready=False)))
    node.manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    node.manager.set_container_startup(pod.uid, "fake://app", started=False)
    assert [call.is_added for call in node.notifier.calls] == [True, False, False]


class PodKeeper:
    def __init__(self) -> None:
        self.pods: list[Pod] = []

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        del status, is_added
        self.pods.append(pod)

    def on_pod_removed(self, pod: Pod) -> None:
        self.pods.append(pod)


def test_the_notified_pod_has_its_new_status() -> None:
    pod, keeper = make_pod(status=make_status("Pending")), PodKeeper()
    node = Node(pod)
    node.manager.add_notifier(keeper)
    status, _ = node.manager.set_pod_status(pod, RUNNING)
    node.manager.terminate_pod(pod)
    assert [pod.status for pod in keeper.pods] == [status, node.entry(pod).status]
    assert keeper.pods[0].metadata == pod.metadata


def test_a_notifier_is_called_from_when_it_was_added() -> None:
    pod, late = make_pod(), RecordingNotifier()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    node.manager.add_notifier(late)
    node.manager.set_pod_status(pod, FAILED)
    assert phases(node.notifier) == ["Running", "Failed"]
    assert phases(late) == ["Failed"]


class Raising:
    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        raise OSError("not now")

    def on_pod_removed(self, pod: Pod) -> None:
        raise OSError("not now either")


def test_a_notifier_that_raises_harms_neither_the_caller_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod, after = make_pod(), RecordingNotifier()
    node = Node(pod)
    node.manager.add_notifier(Raising())
    node.manager.add_notifier(after)
    status, changed = node.manager.set_pod_status(pod, RUNNING)
    node.manager.terminate_pod(pod)
    assert (status.phase, changed) == ("Running", True)
    assert phases(node.notifier) == phases(after) == ["Running", None]
    assert [record.getMessage() for record in caplog.records] == [
        "status callback failed: call=Raising.on_pod_updated",
        "status callback failed: call=Raising.on_pod_removed",
    ]
    assert "not now either" in caplog.text


class CallingBack:
    """Sets Running on Pending, and terminates on Running; never called reentrantly."""

    def __init__(self, manager: StatusManager) -> None:
        self.manager = manager
        self.inside = 0
        self.deepest = 0

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        del is_added
        self.inside += 1
        self.deepest = max(self.deepest, self.inside)
        assert self.manager.pod_status(pod.uid) is not None
        if status.phase == "Pending":
            self.manager.set_pod_status(pod, RUNNING)
        else:
            self.manager.terminate_pod(pod)
        self.inside -= 1

    def on_pod_removed(self, pod: Pod) -> None:
        self.manager.remove_orphaned_statuses(set())


def test_a_notifier_may_call_the_manager_and_all_are_notified_in_order() -> None:
    pod, after = make_pod(), RecordingNotifier()
    node = Node(pod)
    back = CallingBack(node.manager)
    node.manager.add_notifier(back)
    node.manager.add_notifier(after)
    node.manager.set_pod_status(pod, make_status("Pending"))
    assert phases(node.notifier) == phases(after) == ["Pending", "Running", None]
    assert back.deepest == 1
    assert node.manager.pod_status(pod.uid) is None


def test_a_notifier_added_by_another_does_not_get_earlier_statuses() -> None:
    pod, friend = make_pod(), RecordingNotifier()
    node = Node(pod)

    class Late(RecordingNotifier):
        def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
            if is_added:
                node.manager.set_pod_status(pod, FAILED)
                node.manager.add_notifier(friend)
            super().on_pod_updated(pod, status, is_added=is_added)

    late = Late()
    node.manager.add_notifier(late)
    node.manager.set_pod_status(pod, RUNNING)
    assert phases(late) == ["Running", "Failed"]
    assert friend.calls == []


# Observers


class AskingObserver(CountingObserver):
    """Calls the manager, then fails."""

    manager: StatusManager

    def container_terminated(self, termination: Termination) -> None:
        super().container_terminated(termination)
        assert self.manager.pod_status("uid-pod") is not None
        raise OSError("no metrics today")


def test_an_observer_may_call_the_manager_and_fail_without_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod, observer = make_pod(), AskingObserver()
    manager = StatusManager(None, PodManager([pod]), FakeDeletionSafety(), observer=observer)
    observer.manager = manager
    _, changed = manager.set_pod_status(pod, make_status("Failed", ended("app", 1)))
    assert changed
    assert observer.terminations.total() == 1
    assert "no metrics today" in caplog.text


def test_an_exit_is_counted_before_the_status_is_notified() -> None:
    pod, order = make_pod(), list[str]()

    class Counting(CountingObserver):
        def container_terminated(self, termination: Termination) -> None:
            order.append(f"exit {termination.exit_code}")

    class Hearing(RecordingNotifier):
        def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
            order.append(status.phase)

    manager = StatusManager(None, PodManager([pod]), FakeDeletionSafety(), observer=Counting())
    manager.add_notifier(Hearing())
    manager.set_pod_status(pod, make_status("Failed", ended("app", 3)))
    assert order == ["exit 3", "Failed"]


# The queue


def fail() -> None:
    raise ZeroDivisionError


def test_calls_are_made_in_order_and_a_failure_does_not_stop_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    callbacks, calls = CallbackQueue(), list[int]()
    callbacks.put(partial(calls.append, 1))
    callbacks.put(fail)
    callbacks.put(partial(calls.append, 2))
    callbacks.flush()
    assert calls == [1, 2]
    assert "ZeroDivisionError" in caplog.text
    callbacks.flush()
    assert calls == [1, 2]


def test_what_a_call_queues_is_made_after_it() -> None:
    callbacks, calls = CallbackQueue(), list[str]()

    def outer() -> None:
        calls.append("outer begins")
        callbacks.put(partial(calls.append, "inner"))
        callbacks.flush()
        calls.append("outer ends")

    callbacks.put(outer)
    callbacks.flush()
    assert calls == ["outer begins", "outer ends", "inner"]


@pytest.mark.parametrize("more", [["second"], []])
def test_a_thread_waits_for_the_one_that_is_telling(more: list[str]) -> None:
    callbacks, calls = CallbackQueue(), list[str]()
    entered, leave = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        assert leave.wait(LONG)
        calls.append("slow")

    def deliver_more() -> None:
        for name in more:
            callbacks.put(partial(calls.append, name))
        callbacks.flush()
        calls.append("came back")

    callbacks.put(slow)
    first = threading.Thread(target=callbacks.flush)
    first.start()
    assert entered.wait(LONG)
    other = threading.Thread(target=deliver_more)
    other.start()
    other.join(0.05)
    assert calls == []
    leave.set()
    for thread in (first, other):
        thread.join(LONG)
    assert calls == ["slow", *more, "came back"]


class ReleasedLate:
    """A lock that runs code of another thread before it is released."""

    def __init__(self, meanwhile: list[Callable[[], None]]) -> None:
        self._lock = threading.Lock()
        self._meanwhile = meanwhile

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        if self._meanwhile:
            other = threading.Thread(target=self._meanwhile.pop())
            other.start()
            other.join(LONG)
        self._lock.release()


def test_what_is_left_to_the_thread_that_is_just_done_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, meanwhile = list[str](), list[Callable[[], None]]()
    late = ReleasedLate(meanwhile)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Lock", lambda: late)
        callbacks = CallbackQueue()

    def leave_it() -> None:
        callbacks.put(partial(calls.append, "left"))
        callbacks.flush(wait=False)
        calls.append("went on")

    meanwhile.append(leave_it)
    callbacks.put(partial(calls.append, "called"))
    callbacks.flush()
    assert calls == ["called", "went on", "left"]


class Interrupted(BaseException):
    """Raised at any line, as by Ctrl-C."""


@pytest.mark.parametrize("wait", [True, False])
def test_an_interrupt_at_any_line_leaves_the_telling_to_others(*, wait: bool) -> None:
    source, first = inspect.getsourcelines(CallbackQueue)
    lines = range(first, first + len(source))
    file = inspect.getsourcefile(CallbackQueue)
    was_interrupted = 0
    for interrupted in lines:
        callbacks, calls, visited = CallbackQueue(), list[str](), list[int]()
        callbacks.put(partial(calls.append, "first"))

        def trace(
            frame: FrameType,
            event: str,
            _: object,
            at: int = interrupted,
            visited: list[int] = visited,
        ) -> Any:
            if frame.f_code.co_filename != file:
                return None
            # Only the first time: Python itself guarantees the exit of a `with`.
            if event == "line" and frame.f_lineno == at and at not in visited:
                visited.append(at)
                raise Interrupted
            return trace

        sys.settrace(trace)
        try:
            callbacks.flush(wait=wait)
        except Interrupted:
            was_interrupted += 1
        finally:
            sys.settrace(None)
        callbacks.put(partial(calls.append, "second"))
        callbacks.flush(wait=False)
        assert calls == ["first", "second"], interrupted
        callbacks.put(partial(calls.append, "third"))
        other = threading.Thread(target=callbacks.flush)
        other.start()
        other.join(LONG)
        assert not other.is_alive(), interrupted
        assert calls == ["first", "second", "third"], interrupted
    assert was_interrupted > 10
