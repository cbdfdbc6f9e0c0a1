import asyncio
import threading
from typing import Any

import pytest
from msgspec import structs

from podstatus import Counters, PodManager, StartupLatencyTracker, StatusManager
from podstatus.kube.objects.pod import API_SOURCE, CONFIG_MIRROR, CONFIG_SOURCE, Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.volumes import HostPathVolumeSource, Volume
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.startup_measurement import PodStartup
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

SECOND = 1_000_000_000
CREATED = Time.parse("2100-01-01T00:00:00Z")
"""Start of the fake clock."""
RUNNING = make_status("Running", running("app"))
UNSCHEDULABLE = make_status("Pending", PodScheduled="False")


def after(seconds: float) -> Time:
    return Time(CREATED + round(seconds * SECOND))


def created(pod: Pod, **spec: Any) -> Pod:
    """Return a pod that was created at the start of the clock."""
    metadata = structs.replace(pod.metadata, creation_timestamp=CREATED)
    return structs.replace(pod, metadata=metadata, spec=structs.replace(pod.spec, **spec))


def started(pod: Pod) -> Pod:
    return structs.replace(pod, status=structs.replace(RUNNING, start_time=after(1)))


def showing(pod: Pod, status: PodStatus) -> Pod:
    return structs.replace(pod, status=status)


class Remembering:
    def __init__(self) -> None:
        self.startups: list[PodStartup] = []

    def pod_started(self, startup: PodStartup) -> None:
        self.startups.append(startup)

    @property
    def totals(self) -> list[float]:
        return [startup.total_seconds for startup in self.startups]


class WallClock(FakeClock):
    """A clock that tests set to a time."""

    nanos = 0

    def now(self) -> int:
        return self.nanos


class Rig:
    """A tracker with a clock that is set."""

    def __init__(self, **options: Any) -> None:
        self.clock = WallClock()
        self.observer = Remembering()
        self.tracker = StartupLatencyTracker(self.observer, clock=self.clock, **options)

    def at(self, seconds: float) -> StartupLatencyTracker:
        """Return the tracker at this many seconds after the creation of the pods."""
        self.clock.nanos = after(seconds).unix_nanos()
        return self.tracker

    def start(self, pod: Pod, *, seen: float = 0, started_at: float) -> None:
        """Observe the pod, acknowledge its status, and observe it started."""
        self.tracker.observed_pod_on_watch(pod, after(seen))
        self.tracker.record_status_updated(started(pod))
        self.tracker.observed_pod_on_watch(started(pod), after(started_at))


POD = created(make_pod())
FROM_API = created(make_pod(annotations={CONFIG_SOURCE: API_SOURCE, CONFIG_MIRROR: "hash"}))


def test_a_pod_is_measured_from_its_creation_until_it_is_seen_started() -> None:
    rig = Rig()
    rig.start(POD, seen=1, started_at=3.5)
    assert rig.observer.startups == [
        PodStartup(
            total_seconds=3.5,
            image_pulling_seconds=0.0,
            init_containers_seconds=0.0,
            sli_seconds=3.5,
            is_first_network_pod=True,
        )
    ]


def test_init_containers_reported_in_sequence_are_subtracted_with_their_pulls() -> None:
    rig = Rig()
    rig.tracker.observed_pod_on_watch(POD, after(0))
    for pull, run, end in ((0.5, 2, 4), (4.2, 5.5, 7)):
        rig.at(pull).record_image_started_pulling(POD.uid)
        rig.at(pull + 1).record_image_finished_pulling(POD.uid)
        rig.tracker.record_init_container_started(POD.uid, after(run))
        rig.tracker.record_init_container_finished(POD.uid, after(end))
    for pull, done in ((7.2, 8.2), (7.3, 8.5)):
        rig.at(pull).record_image_started_pulling(POD.uid)
        rig.at(done).record_image_finished_pulling(POD.uid)
    rig.start(POD, started_at=11)
    [startup] = rig.observer.startups
    assert startup.image_pulling_seconds == pytest.approx(3.3)
    assert startup.init_containers_seconds == pytest.approx(3.5)
    assert startup.sli_seconds == pytest.approx(4.2)


def test_init_containers_reported_as_by_the_kubelet_are_all_counted() -> None:
    """The kubelet first starts the next one, and reports all ended ones at every sync."""
    rig = Rig()
    tracker = rig.tracker
    tracker.observed_pod_on_watch(POD, after(0))
    tracker.record_init_container_started(POD.uid, after(2))
    tracker.record_init_container_started(POD.uid, after(5))
    tracker.record_init_container_finished(POD.uid, after(4))
    for _ in range(2):
        tracker.record_init_container_finished(POD.uid, after(4))
        tracker.record_init_container_finished(POD.uid, after(7))
    rig.start(POD, started_at=10)
    assert [s.init_containers_seconds for s in rig.observer.startups] == [4.0]


# Definition of started


def test_a_pod_is_measured_once() -> None:
    rig = Rig()
    rig.start(POD, started_at=3)
    for second in (4, 5):
        rig.start(POD, started_at=second)
    assert rig.observer.totals == [3.0]


def test_both_the_server_and_the_watch_must_show_it_started() -> None:
    rig = Rig()
    creating = showing(POD, make_status("Pending", waiting("app")))
    rig.tracker.observed_pod_on_watch(POD, after(0))
    rig.tracker.record_status_updated(creating)
    rig.tracker.observed_pod_on_watch(creating, after(2))
    rig.tracker.record_status_updated(started(POD))
    rig.tracker.observed_pod_on_watch(creating, after(3))
    assert rig.observer.totals == []
    rig.tracker.observed_pod_on_watch(started(POD), after(4))
    assert rig.observer.totals == [4.0]


def test_a_watch_that_is_faster_than_the_answer_to_the_patch_counts() -> None:
    rig = Rig()
    creating = showing(POD, make_status("Pending", waiting("app")))
    rig.tracker.observed_pod_on_watch(POD, after(0))
    rig.tracker.observed_pod_on_watch(started(POD), after(3))
    rig.tracker.observed_pod_on_watch(started(POD), after(5))
    rig.tracker.record_status_updated(creating)
    assert rig.observer.totals == []
    rig.tracker.record_status_updated(started(POD))
    assert rig.observer.totals == [3.0]
    rig.tracker.record_status_updated(started(POD))
    rig.tracker.observed_pod_on_watch(started(POD), after(9))
    assert rig.observer.totals == [3.0]


def test_once_accepted_a_later_status_does_not_take_it_back() -> None:
    rig = Rig()
    rig.tracker.observed_pod_on_watch(POD, after(0))
    rig.tracker.record_status_updated(started(POD))
    rig.tracker.record_status_updated(showing(POD, make_status("Running", ended("app", 1))))
    rig.tracker.observed_pod_on_watch(started(POD), after(9))
    assert rig.observer.totals == [9.0]


# Excluded pods


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(started(POD), id="had begun before it was first seen"),
        pytest.param(showing(POD, UNSCHEDULABLE), id="could not be scheduled at once"),
        pytest.param(created(make_static_pod()), id="static"),
        pytest.param(created(make_static_pod(mirror=True)), id="mirror"),
        pytest.param(FROM_API, id="mirror, marked as the kubelet marks what its watch delivers"),
    ],
)
def test_some_pods_are_never_measured(first: Pod) -> None:
    rig = Rig()
    rig.tracker.observed_pod_on_watch(first, after(0))
    rig.tracker.record_status_updated(started(first))
    rig.tracker.observed_pod_on_watch(started(first), after(2))
    assert rig.observer.startups == []


def test_a_pod_that_could_not_be_scheduled_at_once_stays_out_when_it_is_scheduled() -> None:
    rig = Rig()
    rig.tracker.observed_pod_on_watch(showing(POD, UNSCHEDULABLE), after(0))
    rig.start(showing(POD, make_status("Pending", PodScheduled="True")), seen=1, started_at=2)
    assert rig.observer.startups == []


def test_a_pod_found_unschedulable_later_is_not_measured_either() -> None:
    rig = Rig()
    rig.tracker.observed_pod_on_watch(POD, after(0))
    rig.tracker.observed_pod_on_watch(showing(POD, UNSCHEDULABLE), after(1))
    rig.start(POD, started_at=5)
    assert rig.observer.startups == []


def test_an_unknown_pod_is_not_measured() -> None:
    rig = Rig()
    rig.tracker.record_image_started_pulling(POD.uid)
    rig.tracker.record_status_updated(started(POD))
    rig.tracker.observed_pod_on_watch(started(POD), after(2))
    assert rig.observer.startups == []


def test_a_pod_without_a_time_of_creation_is_not_measured() -> None:
    rig = Rig()
    rig.start(make_pod(), started_at=2)
    assert rig.observer.startups == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_is_followed_no_more(phase: str) -> None:
    rig = Rig()
    rig.tracker.observed_pod_on_watch(POD, after(0))
    rig.tracker.record_status_updated(started(POD))
    rig.tracker.observed_pod_on_watch(showing(POD, make_status(phase)), after(1))
    rig.tracker.observed_pod_on_watch(started(POD), after(2))
    assert rig.observer.startups == []


def test_a_pod_that_is_gone_is_forgotten_excluded_or_not() -> None:
    rig = Rig()
    for pod in (POD, showing(POD, UNSCHEDULABLE)):
        rig.tracker.observed_pod_on_watch(pod, after(0))
        rig.tracker.record_status_updated(started(POD))
        rig.tracker.delete_pod_startup_state(POD.uid)
        rig.tracker.observed_pod_on_watch(started(POD), after(1))
    assert rig.observer.startups == []
    rig.start(POD, started_at=2)
    assert rig.observer.totals == [2.0]


# Stateful pods, and the first pod with a network


def test_of_a_stateful_pod_only_the_total_is_known() -> None:
    rig = Rig()
    volume = Volume(name="data", host_path=HostPathVolumeSource(path="/data"))
    rig.start(created(make_pod(), volumes=(volume,)), started_at=3)
    [startup] = rig.observer.startups
    assert (startup.total_seconds, startup.sli_seconds) == (3.0, None)
    assert not startup.is_first_network_pod


def test_the_first_network_pod_is_the_first_stateless_one_not_on_the_hosts_network() -> None:
    rig = Rig()
    volume = Volume(name="data", host_path=HostPathVolumeSource(path="/data"))
    rig.start(created(make_pod("stateful"), volumes=(volume,)), started_at=1)
    rig.start(created(make_pod("host"), host_network=True), started_at=2)
    rig.start(created(make_pod("first")), started_at=3)
    rig.start(created(make_pod("second")), started_at=4)
    assert [s.total_seconds for s in rig.observer.startups if s.is_first_network_pod] == [3.0]
    assert rig.observer.totals == [1.0, 2.0, 3.0, 4.0]


# Limits, input validation, threads


def test_pods_that_are_never_removed_do_not_fill_the_memory() -> None:
    rig = Rig(max_pods=3)
    pods = [created(make_pod(f"pod-{number}")) for number in range(5)]
    for pod in pods:
        rig.tracker.observed_pod_on_watch(pod, after(0))
    for number, pod in enumerate(pods):
        rig.tracker.record_status_updated(started(pod))
        rig.tracker.observed_pod_on_watch(started(pod), after(number))
    assert rig.observer.totals == [2.0, 3.0, 4.0]
    assert len(rig.tracker) == 3


def test_a_pod_that_is_known_needs_no_room() -> None:
    rig = Rig(max_pods=2)
    one, other = created(make_pod("one")), created(make_pod("other"))
    for pod in (one, other):
        rig.tracker.observed_pod_on_watch(pod, after(0))
    for pod, second in ((other, 2), (one, 3)):
        rig.tracker.record_status_updated(started(pod))
        rig.tracker.observed_pod_on_watch(started(pod), after(second))
    assert rig.observer.totals == [2.0, 3.0]


def test_excluded_pods_are_bounded_too() -> None:
    rig = Rig(max_pods=3)
    for number in range(100):
        pod = make_pod(f"pod-{number}", status=UNSCHEDULABLE)
        rig.tracker.observed_pod_on_watch(pod, after(0))
    assert len(rig.tracker) == 3


def test_nothing_but_the_fact_is_kept_of_a_pod_that_was_measured() -> None:
    rig = Rig()
    rig.start(POD, started_at=3)
    before = rig.tracker.state(POD.uid)
    for _ in range(10):
        rig.tracker.record_image_started_pulling(POD.uid)
        rig.tracker.record_init_container_started(POD.uid, after(4))
    assert before is not None
    assert rig.tracker.state(POD.uid) is before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StartupLatencyTracker(object()), "lacks pod_started"),  # type: ignore[arg-type]
        (lambda: Rig(max_pods=0), "max_pods is 0"),
        (lambda: Rig().tracker.observed_pod_on_watch(POD, 1), "expected a Time, got int"),  # type: ignore[arg-type]
        (lambda: Rig().tracker.observed_pod_on_watch({}, after(1)), "expected a Pod"),  # type: ignore[arg-type]
        (lambda: Rig().tracker.record_init_container_started("uid", 1.5), "expected a Time"),  # type: ignore[arg-type]
        (lambda: Rig().tracker.record_init_container_finished("uid", 1.5), "expected a Time"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


class Difficult(Remembering):
    """Calls the tracker, then raises."""

    tracker: StartupLatencyTracker

    def pod_started(self, startup: PodStartup) -> None:
        super().pod_started(startup)
        self.tracker.delete_pod_startup_state(POD.uid)
        raise OSError("no metrics today")


def test_an_observer_may_call_the_tracker_and_fail_without_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    observer = Difficult()
    observer.tracker = tracker = StartupLatencyTracker(observer)
    tracker.observed_pod_on_watch(POD, after(0))
    tracker.record_status_updated(started(POD))
    tracker.observed_pod_on_watch(started(POD), after(2))
    assert observer.totals == [2.0]
    assert "no metrics today" in caplog.text


def test_every_pod_is_measured_once_however_many_threads_look() -> None:
    counters = Counters()
    tracker = StartupLatencyTracker(counters)
    pods = [created(make_pod(f"pod-{number}")) for number in range(200)]

    def look() -> None:
        for pod in pods:
            tracker.observed_pod_on_watch(pod, after(0))
            tracker.record_image_started_pulling(pod.uid)
            tracker.record_image_finished_pulling(pod.uid)
            tracker.record_status_updated(started(pod))
            tracker.observed_pod_on_watch(started(pod), after(3))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.snapshot().pod_start_total_duration.count == len(pods)


# With a manager


async def test_with_a_manager_the_running_loop_leads_to_a_measurement() -> None:
    clock, counters, pod = FakeClock(), Counters(), POD
    tracker = StartupLatencyTracker(counters, clock=clock)
    api, directory = InMemoryPodApi(pod), PodManager([pod])
    manager = StatusManager(
        api,
        directory,
        FakeDeletionSafety(),
        startup_latency=tracker,
        observer=counters,
        clock=clock,
    )
    loop = asyncio.create_task(manager.run())

    async def watch() -> None:
        await run_ready_tasks()
        shown = api.pod(pod.namespace, pod.name)
        assert shown is not None
        directory.update_pod(shown)
        tracker.observed_pod_on_watch(shown, Time.from_unix_nanos(clock.now()))

    await watch()
    manager.set_pod_status(pod, make_status("Pending", waiting("app")))
    await watch()
    await clock.advance(7)
    manager.set_pod_status(pod, RUNNING)
    assert counters.snapshot().pod_start_total_duration.count == 0
    await watch()
    manager.stop()
    await loop
    counts = counters.snapshot()
    assert (counts.pod_start_total_duration.count, counts.pod_start_sli_duration.sum) == (1, 7)
    assert counts.first_network_pod_start_sli_seconds == 7.0
    assert counts.status_sync_duration.count == 2
