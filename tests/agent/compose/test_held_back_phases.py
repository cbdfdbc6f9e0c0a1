"""A terminal phase is shown when the status sync sends it."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from podstatus import Pod, PodManager, StatusManager
from podstatus.agent.compose.held_back_phases import HeldBackPhases
from podstatus.agent.compose.snapshot_updater import SnapshotUpdater
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import History
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.health import HealthState, pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.testing.builders import ended, make_pod, make_static_pod, make_status, running
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety, RecordingNotifier

NOW = Time.parse("2026-01-01T00:00:00Z")
RUNNING = make_status("Running", running("app"), Ready="True")
FAILED = structs.replace(
    make_status("Failed", running("app"), Ready="True", DisruptionTarget="True"),
    reason="Terminated",
    message="the node shuts down",
)


class Scene:
    def __init__(self, *pods: Pod, runs: bool = True) -> None:
        self.safety = FakeDeletionSafety({pod.uid: runs for pod in pods})
        self.pods = PodManager(pods)
        self.manager = StatusManager(None, self.pods, self.safety)
        self.held_back = HeldBackPhases(self.pods, self.safety)
        self.cache = SnapshotCache()
        self.updater = SnapshotUpdater(self.cache, self.pods, self.manager, self.held_back)
        self.listener = RecordingNotifier()
        self.held_back.forward_to((self.updater, self.listener))
        self.manager.add_notifier(self.held_back)

    def stopped(self, pod: Pod) -> None:
        """No container of the pod runs any more."""
        self.safety.table[pod.uid] = False
        self.held_back.pod_changed(pod.uid)

    def phases(self) -> list[str]:
        """The phases that listeners get; `removed` for the end."""
        return ["removed" if it.status is None else it.status.phase for it in self.listener.calls]

    def last(self) -> PodStatus:
        status = self.listener.calls[-1].status
        assert status is not None
        return status

    def shown(self) -> PodSummary:
        self.updater.update_once()
        (pod,) = self.cache.pods().values()
        return pod


def test_a_terminal_phase_is_forwarded_when_no_container_may_run() -> None:
    pod = make_pod("web")
    scene = Scene(pod)
    scene.manager.set_pod_status(pod, RUNNING)
    scene.manager.set_pod_status(pod, FAILED)
    scene.held_back.pod_changed(pod.uid)
    assert scene.phases() == ["Running", "Running"]
    held = scene.last()
    assert (held.reason, held.message) == ("", "")
    assert [c.type for c in held.conditions or ()] == ["Ready"], "as the sync sends it"
    scene.stopped(pod)
    assert scene.phases() == ["Running", "Running", "Failed"]
    assert scene.last() == scene.manager.pod_status(pod.uid)
    scene.held_back.pod_changed(pod.uid)
    assert len(scene.phases()) == 3, "forwarded once"


def test_the_health_meanwhile_is_ending_with_the_reason() -> None:
    pod = make_pod("web")
    scene = Scene(pod)
    scene.manager.set_pod_status(pod, RUNNING)
    scene.manager.set_pod_status(pod, FAILED)
    shown = scene.shown()
    assert (shown.phase, shown.reason) == ("Running", "")
    health = pod_health(shown, NOW)
    assert health.state is HealthState.ENDING
    assert health.message == (
        "The pod is terminating; container app is still running. Terminated: the node shuts down"
    )
    scene.stopped(pod)
    after = scene.shown()
    assert (after.phase, after.terminating) == ("Failed", None)
    assert pod_health(after, NOW).state is HealthState.FAILED


def test_a_pod_that_completes_is_terminating_without_a_reason() -> None:
    pod = make_pod("web")
    scene = Scene(pod)
    scene.manager.set_pod_status(pod, RUNNING)
    scene.manager.set_pod_status(pod, make_status("Succeeded", ended("app", 0)))
    health = pod_health(scene.shown(), NOW)
    assert health.message == "The pod is terminating; no container is running."
    assert health.state is HealthState.ENDING


def test_the_first_status_of_an_agent_is_compared_with_the_one_of_the_server() -> None:
    pod = make_pod("web", status=RUNNING)
    scene = Scene(pod)
    scene.manager.set_pod_status(pod, FAILED)
    assert scene.phases() == ["Running"]
    failed = make_pod("web", status=FAILED)
    scene = Scene(failed)
    scene.manager.set_pod_status(failed, FAILED)
    assert scene.phases() == ["Failed"]


def test_a_static_pod_is_compared_with_its_mirror() -> None:
    static = make_static_pod("static")
    mirror = make_static_pod("static", mirror=True)
    scene = Scene(static, structs.replace(mirror, status=RUNNING))
    scene.manager.set_pod_status(static, FAILED)
    assert scene.phases() == ["Running"]
    scene.safety.table[static.uid] = False
    scene.held_back.pod_changed(mirror.uid)
    assert scene.phases() == ["Running", "Failed"]


def test_a_restart_during_a_termination_has_no_phase_in_the_history(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    pod = make_pod("web", status=RUNNING)
    for statuses in ((RUNNING, FAILED), (RUNNING,)):  # of one agent, and of the next one
        scene = Scene(pod)
        writer = StatusHistoryWriter(history, clock=FakeClock())
        scene.held_back.forward_to((writer,))
        for status in statuses:
            scene.manager.set_pod_status(pod, status)
        asyncio.run(writer.write_once())
    changes = [entry.transition for entry in history.timeline("default", "web")]
    assert [it.after for it in changes if it.kind == "phase"] == ["Running"]
    assert "DisruptionTarget" not in {it.subject for it in changes}


@pytest.mark.parametrize("runs", [True, False])
def test_the_end_of_a_pod_follows_its_last_phase(*, runs: bool) -> None:
    pod = make_pod("web")
    scene = Scene(pod)
    scene.manager.set_pod_status(pod, RUNNING)
    scene.manager.set_pod_status(pod, FAILED)
    scene.safety.table[pod.uid] = runs  # True while resources of the pod may be prepared
    scene.manager.terminate_pod(pod)
    scene.stopped(pod)
    assert scene.phases()[-2:] == ["Failed", "removed"]


def test_a_pod_that_has_ended_is_shown_so_though_it_is_still_to_be_cleaned_up() -> None:
    pod = make_pod("web", status=RUNNING)
    scene = Scene(pod, runs=False)
    scene.manager.set_pod_status(pod, FAILED)
    scene.safety.table[pod.uid] = True  # its deletion is held back until its files are removed
    scene.manager.set_pod_status(pod, make_status("Failed", ended("app", 137)))
    assert scene.phases() == ["Failed", "Failed"]
