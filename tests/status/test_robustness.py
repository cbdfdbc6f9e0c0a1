"""What others do to the manager: odd clients, interrupts, hostile spellings."""

import asyncio
import sys
from enum import StrEnum
from typing import Any, cast

import pytest
from msgspec import structs

from podstatus import (
    ApiError,
    ContainerFacts,
    ContainerRunState,
    Pod,
    PodFacts,
    PodManager,
    PodStatus,
    StatusManager,
    Time,
    generate_api_pod_status,
)
from podstatus.base.wake_up import WakeUp
from podstatus.kube.objects.containers import Container, Probe
from podstatus.kube.scalars.parse_cache import MAX_CACHED_LENGTH, cached_for_short_strings
from podstatus.status.ports import PodUpdateNotifier
from podstatus.testing.builders import (
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import FakeDeletionSafety, RecordingNotifier
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

RUNNING = make_status("Running", running("app"), Ready="True")


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, iter])
def test_uids_to_keep_may_come_in_any_form(kind: Any) -> None:
    pods = [make_pod(f"pod-{n}") for n in range(5)]
    manager = StatusManager(None, PodManager(pods), FakeDeletionSafety())
    for pod in pods:
        manager.set_pod_status(pod, RUNNING)
    manager.remove_orphaned_statuses(kind(["uid-pod-4", "uid-pod-0", "uid-elsewhere"]))
    assert sorted(manager.entries()) == ["uid-pod-0", "uid-pod-4"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [("uid-pod", "'uid-pod'"), (["uid-pod", 5], "expected UIDs, got a int among them")],
)
def test_what_are_no_uids_to_keep_is_refused(wrong: Any, why: str) -> None:
    manager = StatusManager(None, PodManager(), FakeDeletionSafety())
    manager.set_pod_status(make_pod(), RUNNING)
    with pytest.raises(TypeError, match=why):
        manager.remove_orphaned_statuses(wrong)
    assert list(manager.entries()) == ["uid-pod"]


async def test_a_static_pod_whose_mirror_has_no_uid_waits() -> None:
    static, mirror = make_static_pod(), make_static_pod(mirror=True, uid=" ")
    document_without_uid = {"metadata": {"uid": None}}
    api = InMemoryPodApi(mirror)
    api.patch("kube-system", "static", document_without_uid)
    stored = api.pod("kube-system", "static")
    assert stored is not None
    assert stored.uid == ""
    pods = PodManager([static, stored])
    manager = StatusManager(api, pods, FakeDeletionSafety())
    manager.set_pod_status(static, RUNNING)
    assert await manager.sync_batch(full=True) == 0
    assert manager.pod_status("") is None


async def test_a_caller_that_is_interrupted_does_not_lose_the_sleeper() -> None:
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
            return interrupt if frame.f_code is WakeUp.set.__code__ else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            wake_up.set("first")
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        wake_up.set("second")
        assert "second" in await asyncio.wait_for(sleeper, 60)

    for line in range(1, 9):
        await scenario(line)


def test_long_texts_are_worked_out_but_not_remembered() -> None:
    asked: list[str] = []

    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    remembering = cached_for_short_strings(length)
    short, long = "x" * MAX_CACHED_LENGTH, "x" * (MAX_CACHED_LENGTH + 1)
    assert [remembering(text) for text in (short, short, long, long)] == [64, 64, 65, 65]
    assert asked == [short, long, long]


class Hangs(InMemoryPodApi):
    """A server that never responds."""

    async def get_pod(self, namespace: str, name: str) -> Pod:
        await asyncio.Event().wait()
        raise AssertionError


async def running_manager(
    api: InMemoryPodApi, safety: FakeDeletionSafety, clock: FakeClock, *pods: Pod
) -> tuple[StatusManager, asyncio.Task[None]]:
    manager = StatusManager(api, PodManager(pods), safety, clock=clock)
    task = asyncio.create_task(manager.run())
    await run_ready_tasks()
    return manager, task


async def test_stop_sends_a_phase_that_was_held_back() -> None:
    pod = make_pod()
    api, safety = InMemoryPodApi(pod), FakeDeletionSafety({pod.uid: True})
    manager, loop = await running_manager(api, safety, FakeClock(), pod)
    manager.set_pod_status(pod, make_status("Failed"))
    await run_ready_tasks()
    held = api.pod("default", "pod")
    safety.table[pod.uid] = False
    manager.stop()
    await loop
    sent = api.pod("default", "pod")
    assert held is not None
    assert sent is not None
    assert (held.status.phase, sent.status.phase) == ("", "Failed")


async def test_a_second_stop_can_shorten_the_first() -> None:
    pod, clock = make_pod(), FakeClock()
    manager, loop = await running_manager(Hangs(pod), FakeDeletionSafety(), clock, pod)
    manager.set_pod_status(pod, RUNNING)
    await run_ready_tasks()
    manager.stop(drain=600)
    await clock.advance(1)
    manager.stop(drain=900)
    await clock.advance(1)
    assert not loop.done()
    manager.stop(drain=0)
    await run_ready_tasks()
    assert loop.done()


class BackwardsClock(FakeClock):
    """A wall clock that is set back repeatedly."""

    hours = 0

    def now(self) -> int:
        self.hours += 1
        return super().now() - self.hours * 3_600_000_000_000


async def test_a_clock_that_is_set_back_does_not_prolong_stop() -> None:
    pod, clock = make_pod(), BackwardsClock()
    manager, loop = await running_manager(Hangs(pod), FakeDeletionSafety(), clock, pod)
    manager.set_pod_status(pod, RUNNING)
    await run_ready_tasks()
    manager.stop(drain=5)
    await clock.advance(4)
    assert not loop.done()
    await clock.advance(1)
    assert loop.done()


async def test_stop_before_the_first_step_still_sends() -> None:
    pod, pods = make_pod(), PodManager()
    api = InMemoryPodApi(pod, watcher=pods)
    manager = StatusManager(api, pods, FakeDeletionSafety())
    loop = asyncio.create_task(manager.run())
    manager.set_pod_status(pod, RUNNING)
    manager.stop()
    await loop
    assert [call.verb for call in api.calls] == ["patch"]


async def test_a_run_that_never_began_leaves_the_manager_free() -> None:
    manager = StatusManager(None, PodManager(), FakeDeletionSafety())
    cancelled = asyncio.create_task(manager.run())
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    forgotten = manager.run()
    manager.stop()
    again = asyncio.create_task(manager.run())
    await forgotten  # ends immediately: another run has started
    await run_ready_tasks()
    assert not again.done()
    manager.stop()
    await again


@pytest.mark.parametrize("drain", [-1, float("nan")])
def test_a_drain_that_is_no_time_is_refused(drain: float) -> None:
    manager = StatusManager(None, PodManager(), FakeDeletionSafety())
    with pytest.raises(ValueError, match="drain"):
        manager.stop(drain=drain)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"client": object()}, "client is a object, which lacks get_pod, patch_pod_status"),
        ({"pods": []}, "pods is a list, which lacks pod_by_uid"),
        ({"safety": None}, "safety is a NoneType, which lacks could_have_running_containers"),
        ({"observer": RecordingNotifier()}, "observer is a RecordingNotifier, which lacks"),
        ({"startup_latency": object()}, "startup_latency is a object, which lacks"),
        ({"events": object()}, "events is a object, which lacks warn"),
        ({"outbox": object()}, "outbox is a object, which lacks load, store, drop"),
    ],
)
def test_a_port_that_lacks_a_method_is_refused_at_once(wrong: Any, message: str) -> None:
    ports: Any = {"client": None, "pods": PodManager(), "safety": FakeDeletionSafety()}
    with pytest.raises(TypeError, match=message):
        StatusManager(**(ports | wrong))


def test_a_notifier_that_lacks_a_method_is_refused_at_once() -> None:
    manager = StatusManager(None, PodManager(), FakeDeletionSafety())
    with pytest.raises(TypeError, match="lacks on_pod_updated, on_pod_removed"):
        manager.add_notifier(cast(PodUpdateNotifier, object()))


def test_a_failing_notifier_object_does_not_affect_the_manager(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing:
        def __call__(self, *_: object, **__: object) -> None:
            raise OSError

    notifier, heard = RecordingNotifier(), RecordingNotifier()
    notifier.on_pod_updated = Failing()  # type: ignore[method-assign]
    manager = StatusManager(None, PodManager(), FakeDeletionSafety())
    manager.add_notifier(notifier)
    manager.add_notifier(heard)
    manager.set_pod_status(make_pod(), RUNNING)
    assert [record.getMessage() for record in caplog.records] == [
        "status callback failed: call=Failing"
    ]
    assert len(heard.calls) == 1


class BrokenTracker:
    def record_status_updated(self, pod: Pod) -> None:
        raise RuntimeError("disk full")

    def delete_pod_startup_state(self, uid: str) -> None:
        raise RuntimeError("disk full")


async def test_a_startup_tracker_that_fails_does_not_have_a_status_sent_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod, pods = make_pod(), PodManager()
    api = InMemoryPodApi(pod, watcher=pods)
    safety = FakeDeletionSafety()
    manager = StatusManager(api, pods, safety, startup_latency=BrokenTracker())
    manager.set_pod_status(pod, RUNNING)
    assert await manager.sync_batch(full=False) == 1
    assert await manager.sync_batch(full=False) == 0
    assert "record_status_updated" in caplog.text


def test_an_empty_container_id_matches_no_container() -> None:
    pod = make_pod()
    manager = StatusManager(None, PodManager([pod]), FakeDeletionSafety())
    manager.set_pod_status(pod, make_status("Pending", waiting("app")))
    manager.set_container_readiness(pod.uid, "", ready=True)
    manager.set_container_startup(pod.uid, "", started=True)
    assert manager.entries()[pod.uid].version == 1


def test_a_text_of_an_enum_is_taken_for_what_it_spells() -> None:
    class Phase(StrEnum):
        RUNNING = "Running"

    manager = StatusManager(None, PodManager(), FakeDeletionSafety())
    status, _ = manager.set_pod_status(make_pod(), PodStatus(phase=Phase.RUNNING))
    assert type(status.phase) is str
    assert status.phase == "Running"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"status": {"conditions": 5}}', 422),
        (b'{"status": {"startTime": "x"}}', 422),
    ],
)
async def test_a_patch_that_makes_no_pod_is_rejected_as_a_server_does(
    body: bytes, code: int
) -> None:
    api = InMemoryPodApi(make_pod())
    with pytest.raises(ApiError) as caught:
        await api.patch_pod_status("default", "pod", body)
    assert caught.value.code == code
    assert [(call.verb, call.code) for call in api.calls] == [("patch", code)]


def test_a_built_pod_is_equal_to_the_one_the_api_stores() -> None:
    pod = make_pod(sidecars=["proxy"], generation=2, deleted_at="2024-01-01T00:00:00Z")
    assert InMemoryPodApi(pod, versions=False).pod("default", "pod") == pod


def test_a_reported_probe_does_not_flap_with_statuses_made_of_facts() -> None:
    pod, probed = make_pod(), Container(name="app", readiness_probe=Probe())
    pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(probed,)))
    manager = StatusManager(None, pods := PodManager(), FakeDeletionSafety())
    pods.update_pod(pod)
    app = ContainerFacts(id="fake://app", name="app", state=ContainerRunState.RUNNING)

    def report() -> bool:
        old, now = manager.pod_status(pod.uid), Time.parse("2024-06-01T12:00:00Z")
        facts = PodFacts(containers=(app,))
        status = generate_api_pod_status(pod, facts, now=now, old_status=old)
        shown, _ = manager.set_pod_status(pod, status)
        return (shown.container_statuses or ())[0].ready

    assert report() is False
    manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    assert report() is True
    manager.set_container_readiness(pod.uid, "fake://app", ready=False)
    assert report() is False
