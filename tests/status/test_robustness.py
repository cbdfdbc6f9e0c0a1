"""What others do to the manager: odd clients, interrupts, hostile spellings."""

import asyncio
import sys
import threading
from contextlib import suppress
from typing import Any

import pytest

from podstatus import Pod, PodDirectory, StatusManager
from podstatus.base.loop import WakeUp
from podstatus.base.remember import LONGEST_TEXT, remembered
from podstatus.testing.builders import make_pod, make_static_pod, make_status, running
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.pod_api import InMemoryPodApi

RUNNING = make_status("Running", running("app"), Ready="True")


class GivesUpOnce(InMemoryPodApi):
    """A client that waits for a task of its own which somebody cancelled."""

    gave_up = False

    async def get_pod(self, namespace: str, name: str) -> Pod:
        if not self.gave_up:
            self.gave_up = True
            raise asyncio.CancelledError
        return await super().get_pod(namespace, name)


class IgnoresCancellation(InMemoryPodApi):
    """A client that takes being cancelled for just another failure."""

    async def get_pod(self, namespace: str, name: str) -> Pod:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await super().get_pod(namespace, name)


def test_a_client_that_gives_up_by_itself_does_not_end_the_loop() -> None:
    async def scenario() -> None:
        pod, clock, pods = make_pod(), FakeClock(), PodDirectory()
        api = GivesUpOnce(pod, watcher=pods)
        manager = StatusManager(api, pods, FakeDeletionSafety(), clock=clock)
        loop = asyncio.create_task(manager.run())
        manager.set_pod_status(pod, RUNNING)
        await clock.advance(1)
        assert api.calls == []
        await clock.advance(10)
        assert [call.verb for call in api.calls] == ["get", "patch"]
        manager.stop()
        await loop

    asyncio.run(scenario())


def test_a_client_that_ignores_cancellation_does_not_keep_the_loop_alive() -> None:
    pod = make_pod()
    pods = PodDirectory([pod])
    manager = StatusManager(IgnoresCancellation(pod), pods, FakeDeletionSafety())
    manager.set_pod_status(pod, RUNNING)
    manager.start()
    manager.stop(drain=0)
    assert not [t for t in threading.enumerate() if t.name == "podstatus-sync" and t.is_alive()]


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, iter])
def test_uids_to_keep_may_come_in_any_form(kind: Any) -> None:
    pods = [make_pod(f"pod-{n}") for n in range(5)]
    manager = StatusManager(None, PodDirectory(pods), FakeDeletionSafety())
    for pod in pods:
        manager.set_pod_status(pod, RUNNING)
    manager.remove_orphaned_statuses(kind(["uid-pod-4", "uid-pod-0", "uid-elsewhere"]))
    assert sorted(manager.entries()) == ["uid-pod-0", "uid-pod-4"]


def test_a_text_is_not_taken_for_uids_to_keep() -> None:
    manager = StatusManager(None, PodDirectory([make_pod()]), FakeDeletionSafety())
    manager.set_pod_status(make_pod(), RUNNING)
    with pytest.raises(TypeError, match="'uid-pod'"):
        manager.remove_orphaned_statuses("uid-pod")
    assert list(manager.entries()) == ["uid-pod"]


def test_a_static_pod_whose_mirror_has_no_uid_waits() -> None:
    static, mirror = make_static_pod(), make_static_pod(mirror=True, uid=" ")
    document_without_uid = {"metadata": {"uid": None}}
    api = InMemoryPodApi(mirror)
    api.patch("kube-system", "static", document_without_uid)
    stored = api.pod("kube-system", "static")
    assert stored is not None
    assert stored.uid == ""
    pods = PodDirectory([static, stored])
    manager = StatusManager(api, pods, FakeDeletionSafety())
    manager.set_pod_status(static, RUNNING)
    assert asyncio.run(manager.sync_batch(full=True)) == 0
    assert manager.pod_status("") is None


def test_a_caller_that_is_interrupted_does_not_lose_the_sleeper() -> None:
    """Interrupt `call` after each of its lines in turn; a later call still wakes the waiter."""

    async def scenario(line_to_interrupt: int) -> None:
        wake_up = WakeUp[str]()
        sleeper = asyncio.create_task(wake_up.wait())
        await asyncio.sleep(0)
        lines = 0

        def interrupt(_: Any, event: str, __: object) -> Any:
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == line_to_interrupt:
                    raise KeyboardInterrupt
            return interrupt

        def trace(frame: Any, *_: object) -> Any:
            return interrupt if frame.f_code is WakeUp.call.__code__ else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            wake_up.call("first")
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        wake_up.call("second")
        assert "second" in await asyncio.wait_for(sleeper, 5)

    for line in range(1, 9):
        asyncio.run(scenario(line))


def test_long_texts_are_worked_out_but_not_remembered() -> None:
    asked: list[str] = []

    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    remembering = remembered(length)
    short, long = "x" * LONGEST_TEXT, "x" * (LONGEST_TEXT + 1)
    assert [remembering(text) for text in (short, short, long, long)] == [64, 64, 65, 65]
    assert asked == [short, long, long]
