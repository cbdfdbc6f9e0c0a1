import threading

import pytest

from podstatus import Counters
from podstatus.status.counters import MAX_REASON_LENGTH, Counts
from podstatus.status.decide.startup_measurement import PodStartup
from podstatus.status.decide.update import ContainerType, Termination
from podstatus.status.ports import StartupObserver, StatusObserver, check_port
from podstatus.testing.builders import ended, make_pod, make_status
from tests.support.status_node import Node

FAILED = Termination(ContainerType.REGULAR, 1, "Error")
DONE = Termination(ContainerType.INIT, 0, "Completed")


def startup(total: float, sli: float | None = None, *, first: bool = False) -> PodStartup:
    return PodStartup(
        total_seconds=total,
        image_pulling_seconds=0.0,
        init_containers_seconds=0.0,
        sli_seconds=sli,
        is_first_network_pod=first,
    )


def of(*terminations: Termination, max_series: int = 1000) -> Counts:
    counters = Counters(max_series=max_series)
    for termination in terminations:
        counters.container_terminated(termination)
    return counters.snapshot()


def exits(*codes: int) -> list[Termination]:
    return [Termination(ContainerType.REGULAR, code, "Error") for code in codes]


def test_it_is_an_observer_for_the_manager_and_for_the_tracker() -> None:
    check_port(Counters(), StatusObserver, "observer")
    check_port(Counters(), StartupObserver, "observer")


def test_terminations_are_counted_by_type_exit_code_and_reason() -> None:
    assert of(FAILED, DONE, FAILED).terminated_containers == {FAILED: 2, DONE: 1}


def test_kinds_beyond_the_bound_are_counted_together_by_type() -> None:
    counts = of(*exits(1, 2, 3, 4, 1), DONE, max_series=2)
    one, two = exits(1, 2)
    assert counts.terminated_containers == {one: 2, two: 1}
    assert counts.other_terminated_containers == {ContainerType.REGULAR: 2, ContainerType.INIT: 1}


@pytest.mark.parametrize(("length", "others"), [(MAX_REASON_LENGTH, 0), (MAX_REASON_LENGTH + 1, 1)])
def test_a_reason_that_is_a_whole_text_is_no_kind(length: int, others: int) -> None:
    counts = of(Termination(ContainerType.EPHEMERAL, 1, "x" * length))
    assert sum(counts.other_terminated_containers.values()) == others
    assert sum(counts.terminated_containers.values()) == 1 - others


def test_a_bound_that_is_no_number_of_kinds_is_refused() -> None:
    with pytest.raises(ValueError, match="max_series is -1"):
        Counters(max_series=-1)


def test_gauges_have_the_last_reported_value() -> None:
    counters, by_reason = Counters(), {"deferred": 2, "infeasible": 1}
    counters.pending_resizes(by_reason)
    counters.resizes_in_progress(3)
    by_reason.clear()
    counts = counters.snapshot()
    assert counts.pending_resizes == {"deferred": 2, "infeasible": 1}
    assert counts.resizes_in_progress == 3
    counters.pending_resizes({"deferred": 1})
    assert counters.snapshot().pending_resizes == {"deferred": 1}


def test_sync_durations_are_spread_over_the_kubelets_buckets() -> None:
    counters = Counters()
    for seconds in (0.0, 0.01, 0.7, 61.0):
        counters.status_synced(seconds)
    durations = counters.snapshot().status_sync_duration
    assert list(durations.bounds) == [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60]
    at_most = dict(durations.cumulative())
    assert [at_most[bound] for bound in (0.01, 0.5, 1, 60, float("inf"))] == [2, 2, 3, 3, 4]
    assert durations.sum == pytest.approx(61.71)


def test_startups_are_counted_and_the_promise_is_for_stateless_pods_only() -> None:
    counters = Counters()
    counters.pod_started(startup(9.0, 2.5))
    counters.pod_started(startup(4.0))
    counts = counters.snapshot()
    assert (counts.pod_start_total_duration.count, counts.pod_start_total_duration.sum) == (2, 13.0)
    assert (counts.pod_start_sli_duration.count, counts.pod_start_sli_duration.sum) == (1, 2.5)
    seconds = [0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45]
    minutes = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]
    for durations in (counts.pod_start_total_duration, counts.pod_start_sli_duration):
        assert list(durations.bounds) == seconds + [60 * minute for minute in minutes]


def test_the_first_network_pod_is_remembered() -> None:
    counters = Counters()
    assert counters.snapshot().first_network_pod_start_sli_seconds is None
    counters.pod_started(startup(3.0, 2.0, first=True))
    counters.pod_started(startup(5.0, 4.0))
    assert counters.snapshot().first_network_pod_start_sli_seconds == 2.0


def test_a_snapshot_does_not_change_afterwards() -> None:
    counters = Counters()
    counters.container_terminated(FAILED)
    before = counters.snapshot()
    counters.container_terminated(FAILED)
    counters.status_synced(1.0)
    assert before == of(FAILED)
    assert counters.snapshot() != before


def test_nothing_is_lost_when_threads_count_at_once() -> None:
    counters = Counters()

    def count() -> None:
        for _ in range(2000):
            counters.container_terminated(FAILED)
            counters.status_synced(0.5)
            counters.pod_started(startup(1.0, 1.0))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = counters.snapshot()
    assert counts.terminated_containers == {FAILED: 8000}
    assert counts.status_sync_duration.count == counts.pod_start_sli_duration.count == 8000


def test_a_manager_counts_into_it() -> None:
    pod, counters = make_pod(), Counters()
    node = Node(pod, observer=counters)
    node.manager.set_pod_status(pod, make_status("Failed", ended("app", 1)))
    node.advance(2)
    node.sync()
    node.manager.set_pod_resize_pending_condition(pod.uid, "Deferred", "", 1)
    node.manager.set_pod_resize_in_progress_condition(pod.uid, "", "", 1)
    counts = counters.snapshot()
    assert counts.terminated_containers == {FAILED: 1}
    assert counts.pending_resizes == {"deferred": 1}
    assert counts.resizes_in_progress == 1
    assert (counts.status_sync_duration.count, counts.status_sync_duration.sum) == (1, 2.0)
