"""The event recorder, in virtual time.

Some tests follow client-go v0.36.4, tools/record/event_test.go.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import pytest

from podstatus.agent.compose.status_events import StatusEvents
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.events.correlator import SPAM_BURST, SPAM_INTERVAL_NS
from podstatus.events.counts import EventCounts
from podstatus.events.object_references import node_reference, pod_reference
from podstatus.events.rate_limits import EventPolicy
from podstatus.events.recorder import EventRecorder
from podstatus.kube.api_errors import (
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
    UnavailableError,
)
from podstatus.kube.objects.event import Event
from podstatus.kube.objects.meta import NamedPod, ObjectReference
from podstatus.kube.objects.pod import ApiUID
from podstatus.status.ports import PodEvents, PodReference
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import FakeEventSink

POD = pod_reference(make_pod("p", namespace="n"))
DOWN = UnavailableError("no answer")


class Scene:
    """A recorder, its server and its clock."""

    def __init__(
        self, policy: EventPolicy | None = None, sink: FakeEventSink | None = None
    ) -> None:
        self.clock = FakeClock(rounds=400)
        self.sink = sink or FakeEventSink()
        self.beats = Heartbeats(self.clock)
        self.recorder = EventRecorder(
            self.sink,
            host="node-a",
            clock=self.clock,
            policy=policy,
            heartbeat=self.beats.register("events", max_silent_seconds=30),
            random=lambda: 0.5,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.recorder.run())
            yield self
            task.cancel()

    @property
    def dropped(self) -> dict[str, int]:
        return dict(self.recorder.counts.dropped)


def numbered(number: int) -> ObjectReference:
    return pod_reference(make_pod(f"p{number}", namespace="n"))


async def test_an_event_is_sent_at_once_and_its_repeat_is_counted() -> None:
    async with Scene().running() as scene:
        scene.recorder.normal(POD, "Started", "Container started")
        await run_ready_tasks()
        assert scene.sink.summaries == [("Started", "Container started", 1)]
        await scene.clock.advance(5)
        scene.recorder.normal(POD, "Started", "Container started")
        await run_ready_tasks()
        assert scene.sink.summaries == [("Started", "Container started", 2)]
        (event,) = scene.sink.events.values()
        assert event.first_timestamp.wire == "2100-01-01T00:00:00Z"
        assert event.last_timestamp.wire == "2100-01-01T00:00:05Z"
    assert scene.recorder.counts == EventCounts(recorded=2, sent=1, patched=1)
    assert scene.sink.calls == ["create", "patch"]


async def test_events_have_a_source_and_a_type() -> None:
    async with Scene().running() as scene:
        scene.recorder.normal(node_reference("node-a"), "NodeReady", "ready")
        scene.recorder.warn(POD, "BackOff", "Back-off")
        await run_ready_tasks()
    first, second = scene.sink.events.values()
    assert [first.type, second.type] == ["Normal", "Warning"]
    assert [first.metadata.namespace, second.metadata.namespace] == ["default", "n"]
    assert (first.source.component, first.source.host) == ("kubelet", "node-a")
    assert (first.reporting_component, first.reporting_instance) == ("kubelet", "node-a")


async def test_what_happened_before_it_ran_is_sent_when_it_does() -> None:
    scene = Scene()
    scene.recorder.normal(POD, "Started", "Container started")
    async with scene.running():
        await run_ready_tasks()
        assert len(scene.sink.events) == 1


async def test_events_of_one_moment_have_names_of_their_own() -> None:
    async with Scene().running() as scene:
        for reason in ("Created", "Started", "Killing"):
            scene.recorder.normal(POD, reason, "m")
        await run_ready_tasks()
    assert len(scene.sink.events) == 3


async def test_a_clock_that_was_ahead_leaves_no_events_of_the_future() -> None:
    async with Scene().running() as scene:
        for ahead in (3600, 0):
            scene.clock.step(ahead)
            scene.recorder.normal(POD, "Started", f"ahead by {ahead}")
            scene.clock.step(-ahead)
        await run_ready_tasks()
    early, right = scene.sink.events.values()
    assert early.last_timestamp.wire == "2100-01-01T01:00:00Z"
    assert right.last_timestamp.wire == "2100-01-01T00:00:00Z"


async def test_events_of_a_clock_that_is_corrected_a_little_keep_their_order() -> None:
    async with Scene().running() as scene:
        for number in range(3):
            scene.recorder.normal(POD, "Started", f"number {number}")
            scene.clock.step(-0.4)
        await run_ready_tasks()
    events = list(scene.sink.events.values())
    names = [it.metadata.name for it in events]
    assert [it.message for it in events] == [f"number {number}" for number in range(3)]
    assert names == sorted(set(names))


async def test_a_clock_that_was_ahead_does_not_keep_events_held_back() -> None:
    async with Scene().running() as scene:
        scene.clock.step(3600)
        for number in range(SPAM_BURST + 1):
            scene.recorder.normal(POD, f"Reason{number}", "it happened")
        scene.clock.step(-3600)
        await run_ready_tasks(400)
        assert scene.dropped == {"spam": 1}
        scene.recorder.normal(POD, "Soon", "it happened")
        await scene.clock.advance(SPAM_INTERVAL_NS / 10**9)
        scene.recorder.normal(POD, "Later", "it happened")
        await run_ready_tasks(400)
    assert scene.dropped == {"spam": 2}
    assert scene.sink.summaries[-1][0] == "Later"


async def test_an_event_that_the_server_has_deleted_is_created_again_with_its_count() -> None:
    async with Scene().running() as scene:
        scene.recorder.warn(POD, "BackOff", "m")
        await run_ready_tasks()
        scene.sink.events.clear()
        scene.recorder.warn(POD, "BackOff", "m")
        await run_ready_tasks()
    assert scene.sink.summaries == [("BackOff", "m", 2)]
    assert scene.sink.calls == ["create", "patch", "create"]
    assert scene.recorder.counts == EventCounts(recorded=2, sent=2)


async def test_after_a_restart_the_first_repeat_is_a_new_event() -> None:
    sink = FakeEventSink()
    for _ in range(2):
        scene = Scene(sink=sink)
        await scene.clock.advance(len(sink.events))
        async with scene.running():
            scene.recorder.normal(POD, "Started", "m")
            await run_ready_tasks()
    assert sink.summaries == [("Started", "m", 1)] * 2


async def test_too_many_about_one_object_are_held_back_and_counted_as_dropped() -> None:
    async with Scene().running() as scene:
        for _ in range(30):
            scene.recorder.warn(POD, "BackOff", "m")
        await run_ready_tasks(200)
        assert scene.sink.summaries == [("BackOff", "m", 25)]
        assert scene.dropped == {"spam": 5}
        await scene.clock.advance(300)
        scene.recorder.warn(POD, "BackOff", "m")
        await run_ready_tasks()
        assert scene.sink.summaries == [("BackOff", "m", 31)]


# Failures


@pytest.mark.parametrize(
    ("error", "tries", "dropped"),
    [
        (UnavailableError("no answer"), 12, "undelivered"),
        (UnavailableError("internal", code=500), 12, "undelivered"),
        (BusyError("later"), 12, "undelivered"),
        (DeniedError("unauthorized", code=401), 12, "undelivered"),
        (RejectedError("invalid", code=422), 1, "rejected"),
        (DeniedError("no", code=403), 1, "rejected"),
        (DeniedError("unable … because it is being terminated"), 1, "namespace_gone"),
        (GoneError('namespaces "n" not found'), 1, "namespace_gone"),
        (RuntimeError("a bug"), 1, "broken"),
    ],
    ids=repr,
)
async def test_what_is_hopeless_is_dropped_at_once_and_the_rest_after_twelve_tries(
    error: Exception, tries: int, dropped: str
) -> None:
    async with Scene().running() as scene:
        scene.sink.failures.extend([error] * 12)
        scene.recorder.warn(POD, "BackOff", "m")
        await scene.clock.advance(104.999)
        assert len(scene.sink.calls) == min(tries, 11)
        await scene.clock.advance(0.001)  # half of the first ten seconds, then ten times ten
        assert len(scene.sink.calls) == tries
        assert scene.dropped == {dropped: 1}
        scene.sink.failures.clear()
        scene.recorder.warn(numbered(1), "Next", "m")
        await run_ready_tasks()
        assert scene.sink.summaries == [("Next", "m", 1)]


async def test_what_comes_while_the_server_is_away_is_sent_when_it_is_back() -> None:
    async with Scene().running() as scene:
        scene.sink.failures.extend([DOWN] * 5)
        for number in range(50):
            scene.recorder.warn(numbered(number), "BackOff", "m")
            await scene.clock.advance(1)
        assert len(scene.sink.summaries) == 50
        names = [event.involved_object.name for event in scene.sink.events.values()]
        assert names == [f"p{number}" for number in range(50)]
    assert scene.recorder.counts == EventCounts(recorded=50, sent=50)


async def test_a_busy_server_says_when_to_come_back() -> None:
    async with Scene().running() as scene:
        scene.sink.failures.extend([BusyError("later", retry_after=2)] * 3)
        scene.recorder.warn(POD, "BackOff", "m")
        await scene.clock.advance(5.999)
        assert not scene.sink.events
        await scene.clock.advance(0.001)
        assert scene.sink.events


async def test_a_busy_server_is_not_waited_for_longer_than_another() -> None:
    async with Scene().running() as scene:
        scene.sink.failures.append(BusyError("later", retry_after=3600))
        scene.recorder.warn(POD, "BackOff", "m")
        await scene.clock.advance(10)
        assert scene.sink.events


async def test_an_event_whose_answer_was_lost_is_not_sent_twice() -> None:
    async with Scene().running() as scene:
        scene.sink.lost_responses = 1
        scene.sink.failures.append(DOWN)
        scene.recorder.warn(POD, "BackOff", "m")
        await scene.clock.advance(10)
        assert scene.sink.calls == ["create", "create"]
        assert scene.sink.summaries == [("BackOff", "m", 1)]
    assert scene.recorder.counts == EventCounts(recorded=1, sent=1)


async def test_a_repeat_that_failed_is_tried_again() -> None:
    async with Scene().running() as scene:
        scene.sink.failures.extend([None, ConflictError("changed meanwhile"), DOWN])
        for _ in range(2):
            scene.recorder.warn(POD, "BackOff", "m")
        await scene.clock.advance(20)
        assert scene.sink.summaries == [("BackOff", "m", 2)]
    assert scene.recorder.counts == EventCounts(recorded=2, sent=1, patched=1)


async def test_a_full_queue_drops_the_newest_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # One event is being sent, three are queued.
    async with Scene(EventPolicy(max_queued=3)).running() as scene:
        scene.sink.failures.append(DOWN)
        for number in range(1, 8):
            scene.recorder.warn(numbered(number), "BackOff", "m")
            await run_ready_tasks()
        assert scene.dropped == {"queue_full": 3}
        await scene.clock.advance(10)
        names = [event.involved_object.name for event in scene.sink.events.values()]
        assert names == ["p1", "p2", "p3", "p4"]
    messages = [message for message in caplog.messages if "queue is full" in message]
    assert messages == ["events dropped because the queue is full: count=3"]


async def test_nonsense_is_dropped_and_stops_nothing() -> None:
    async with Scene().running() as scene:
        scene.recorder.warn(None, "BackOff", "m")  # type: ignore[arg-type]
        scene.recorder.warn(POD, "BackOff", "m")
        await run_ready_tasks()
        assert len(scene.sink.events) == 1
        assert scene.dropped == {"broken": 1}


# The limit


async def test_events_have_a_limit_of_their_own() -> None:
    async with Scene(EventPolicy(qps=5, burst=10)).running() as scene:
        for number in range(30):
            scene.recorder.warn(numbered(number), "BackOff", "m")
        await run_ready_tasks(200)
        assert len(scene.sink.events) == 10
        await scene.clock.advance(1)
        assert len(scene.sink.events) == 15
        await scene.clock.advance(3)
        assert len(scene.sink.events) == 30


async def test_a_limit_of_zero_is_none() -> None:
    async with Scene(EventPolicy(qps=0)).running() as scene:
        for number in range(900):
            scene.recorder.warn(numbered(number), "BackOff", "m")
        await run_ready_tasks(2000)
        assert len(scene.sink.events) == 900


@pytest.mark.parametrize(
    "fields",
    [
        {"qps": -1},
        {"burst": 0},
        {"max_queued": 0},
        {"max_tries": 0},
        {"retry_seconds": -1},
    ],
    ids=str,
)
def test_a_policy_that_lets_nothing_through_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        EventPolicy(**fields)


def test_a_burst_does_not_matter_without_a_limit() -> None:
    assert EventPolicy(qps=0, burst=0).burst == 0


# The end


class HangingSink(FakeEventSink):
    async def create(self, event: Event) -> Event:
        await asyncio.Event().wait()
        return event


async def test_what_waits_at_the_end_is_tried_once_more() -> None:
    scene = Scene()
    scene.sink.failures.append(DOWN)
    async with scene.running():
        for number in range(3):
            scene.recorder.warn(numbered(number), "BackOff", "m")
        await run_ready_tasks()
        assert not scene.sink.events
    scene.sink.failures.extend([None, DOWN])
    await scene.recorder.drain(10)
    names = [event.involved_object.name for event in scene.sink.events.values()]
    assert names == ["p0", "p2"]
    assert scene.dropped == {"undelivered": 1}


async def test_the_end_does_not_wait_for_a_server_that_hangs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(sink=HangingSink())
    for number in range(3):
        scene.recorder.warn(numbered(number), "BackOff", "m")
    await scene.recorder.drain(0.01)
    scene.recorder.warn(POD, "TooLate", "m")
    assert scene.dropped == {"stopped": 4}
    assert scene.recorder.counts.waiting == 0
    assert "queued events dropped at shutdown: count=3" in caplog.messages


async def test_a_recorder_with_nothing_to_say_shows_that_it_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("podstatus.events.recorder._IDLE_SECONDS", 0.001)

    async with Scene().running() as scene:
        await scene.clock.advance(31)
        while scene.beats.stalled():
            await run_ready_tasks(1)


async def test_a_recorder_that_retries_is_alive() -> None:
    async with Scene().running() as scene:
        scene.sink.failures.extend([DOWN] * 12)
        scene.recorder.warn(POD, "BackOff", "m")
        for _ in range(10):
            await scene.clock.advance(10)
            assert not scene.beats.stalled()


# Threads


async def test_any_thread_may_record() -> None:
    scene = Scene(EventPolicy(qps=0, max_queued=10_000))

    def work(worker: int) -> None:
        for number in range(100):
            scene.recorder.warn(numbered(worker * 100 + number), "BackOff", "m")

    async with scene.running():
        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        while scene.recorder.counts.waiting:
            await run_ready_tasks(1)
    assert len(scene.sink.events) == 800
    assert scene.recorder.counts == EventCounts(recorded=800, sent=800)


# For the status manager


async def test_the_status_manager_records_events_about_pods() -> None:
    async with Scene().running() as scene:
        events: PodEvents = StatusEvents(scene.recorder, "node", on_foreign_write=print)
        events.warn(PodReference("n", "p", ApiUID("u")), "StatusRejected", "Status was rejected: x")
        await run_ready_tasks()
    (event,) = scene.sink.events.values()
    about = ObjectReference(kind="Pod", api_version="v1", namespace="n", name="p", uid="u")
    assert event.involved_object == about
    assert (event.type, event.reason) == ("Warning", "StatusRejected")


async def test_a_foreign_status_write_is_an_event_about_the_node() -> None:
    async with Scene().running() as scene:
        writes: list[tuple[NamedPod, str]] = []
        events: PodEvents = StatusEvents(
            scene.recorder, "node-a", on_foreign_write=lambda *write: writes.append(write)
        )
        events.warn(PodReference("n", "p", ApiUID("u")), "ForeignStatusWrite", "x was changed")
        await run_ready_tasks()
    (event,) = scene.sink.events.values()
    about = event.involved_object
    assert (about.kind, about.name) == ("Node", "node-a")
    assert (event.type, event.message) == ("Warning", "Pod n/p: x was changed")
    assert [(pod.name, message) for pod, message in writes] == [("p", "x was changed")]


async def test_one_line_is_logged_for_each_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "podstatus.events")
    async with Scene().running() as scene:
        for _ in range(2):
            scene.recorder.warn(POD, "BackOff", "Back-off")
        await run_ready_tasks()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "event sent: reason=BackOff object=Pod/n/p count=1 message='Back-off'"),
        ("DEBUG", "event patched: reason=BackOff object=Pod/n/p count=2 message='Back-off'"),
    ]
