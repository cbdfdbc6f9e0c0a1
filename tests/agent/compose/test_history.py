"""History entries besides statuses: events, foreign writes, slow syncs."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from podstatus.agent.compose.history import AgentHistory, RecordingCounters
from podstatus.agent.compose.status_events import StatusEvents
from podstatus.agent.settings.load import load_settings
from podstatus.events import reasons
from podstatus.events.object_references import container_reference, node_reference, pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import ApiUID
from podstatus.observe.history.sqlite_store import open_history_reader
from podstatus.observe.history.status_listener import last_alive
from podstatus.status.ports import PodReference
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import FakeEventSink
from tests.agent.compose.history_scene import POD, a_history, leave, next_history, noted, words


@pytest.fixture
def history(tmp_path: Path) -> AgentHistory:
    settings = load_settings({"root_dir": str(tmp_path)}, {}).settings
    return a_history(settings, tmp_path, FakeClock())


def test_events_about_pods_are_noted_and_no_others(history: AgentHistory) -> None:
    recorder = EventRecorder(
        FakeEventSink(), host="node", clock=FakeClock(), on_recorded=history.record_event
    )
    recorder.normal(container_reference(POD, "app"), reasons.STARTED, "Container started")
    recorder.warn(pod_reference(POD), reasons.FAILED_SYNC, "no")
    recorder.normal(node_reference("node"), reasons.NODE_READY, "yes")
    first, second = noted(history)
    assert words(first) == ("event", "app", "Normal", "Started", "Container started")
    assert words(second) == ("event", "", "Warning", "FailedSync", "no")
    assert (first.uid, first.namespace, first.name) == ("uid-web", "default", "web")


def test_an_event_is_recorded_though_the_history_fails() -> None:
    def broken(*_: object) -> None:
        raise OSError("no")

    recorder = EventRecorder(FakeEventSink(), host="node", clock=FakeClock(), on_recorded=broken)
    recorder.normal(pod_reference(POD), reasons.STARTED, "Container started")
    assert recorder.counts.recorded == 1


def test_a_foreign_write_is_recorded_for_the_pod_and_its_event_for_the_node(
    history: AgentHistory,
) -> None:
    recorder = EventRecorder(
        FakeEventSink(), host="node", clock=FakeClock(), on_recorded=history.record_event
    )
    events = StatusEvents(recorder, "node", on_foreign_write=history.record_foreign_write)
    pod = PodReference("default", "web", ApiUID("mirror-uid-web"))
    events.warn(pod, reasons.FOREIGN_STATUS_WRITE, "Condition Ready was set")
    events.warn(pod, reasons.STATUS_REJECTED, "Status was rejected")
    foreign, rejected = noted(history)
    expected = ("foreign", "", "", "ForeignStatusWrite", "Condition Ready was set")
    assert words(foreign) == expected
    assert words(rejected)[3] == "StatusRejected"
    assert {foreign.uid, rejected.uid} == {"uid-web"}


def test_a_status_that_is_late_is_noted_with_its_time(history: AgentHistory) -> None:
    counters = RecordingCounters(history)
    for seconds in (0.2, 0.99, 1.0, 12.34):
        counters.pod_synced(POD.uid, "default", "web", seconds)
    assert [words(it)[:3] for it in noted(history)] == [
        ("sync", "", "1.0 s"),
        ("sync", "", "12.3 s"),
    ]


def test_without_a_history_nothing_is_noted_and_nothing_fails(tmp_path: Path) -> None:
    settings = load_settings({"root_dir": str(tmp_path), "history": "false"}, {}).settings
    history = a_history(settings, tmp_path, FakeClock())
    history.record_event(pod_reference(POD), "Normal", "Started", "")
    history.record_foreign_write(pod_reference(POD), "")
    history.record_slow_sync(POD.uid, "default", "web", 5.0)
    assert history.counts.problem == ""
    history.close()


def test_the_next_agent_records_the_downtime(history: AgentHistory, tmp_path: Path) -> None:
    leave(history)
    clock = FakeClock()
    asyncio.run(clock.advance(12.5))
    later = next_history(tmp_path, clock)
    assert later.downtime is not None
    for pod in (POD, make_pod("new"), POD):
        later.downtime.on_pod_updated(pod, pod.status, is_added=True)
    _, away = noted(later)
    assert words(away) == ("away", "", "12.500 s", "", "")
    assert away.uid == POD.uid


def test_an_agent_that_finds_a_pod_late_was_there_since_its_start(
    history: AgentHistory, tmp_path: Path
) -> None:
    leave(history)
    clock = FakeClock()
    asyncio.run(clock.advance(12.5))
    later, began = next_history(tmp_path, clock), clock.now()
    asyncio.run(clock.advance(3600))
    assert later.downtime is not None
    later.downtime.on_pod_updated(POD, POD.status, is_added=True)
    _, away = noted(later)
    assert (away.transition.duration_seconds, away.at) == (12.5, began)


def test_who_reads_the_history_does_not_look_like_an_agent(
    history: AgentHistory, tmp_path: Path
) -> None:
    leave(history)
    with open_history_reader(tmp_path / "history.db") as reader:
        reader.count()
    (tmp_path / "history.db").touch()  # so does a program that may write
    assert last_alive(tmp_path / "history.db") == FakeClock().now()
    assert (tmp_path / "history.db-heartbeat").stat().st_mode & 0o777 == 0o600


def test_an_agent_of_before_is_known_by_the_time_of_its_history(
    history: AgentHistory, tmp_path: Path
) -> None:
    os.utime(history.path, ns=(7, 7))
    assert last_alive(history.path) == 7
    assert last_alive(tmp_path / "none.db") is None


def test_a_clock_that_was_set_back_tells_of_no_absence(
    history: AgentHistory, tmp_path: Path
) -> None:
    leave(history)
    later = next_history(tmp_path, FakeClock("2099-12-31T00:00:00Z"))
    assert later.downtime is not None
    later.downtime.on_pod_updated(POD, POD.status, is_added=True)
    assert len(noted(later)) == 1


def test_a_disk_that_hangs_does_not_stop_the_loop(
    history: AgentHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, came_back = threading.Event(), list[bool]()
    monkeypatch.setattr(os, "utime", lambda *_, **__: came_back.append(disk.wait(0.8)))

    async def scene() -> None:
        assert history.downtime is not None
        there = asyncio.create_task(history.downtime.run())
        await run_ready_tasks()
        disk.set()
        await asyncio.get_running_loop().shutdown_default_executor()
        there.cancel()

    asyncio.run(scene())
    assert set(came_back) == {True}
