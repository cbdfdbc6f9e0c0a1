import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.api_errors import UnavailableError, api_error
from podstatus.kube.objects.pod import ApiUID, PodUID
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.workqueue import Priority, SyncQueue
from podstatus.testing.builders import make_pod

A, B, C, D, E = (PodUID(name) for name in "abcde")
DOWN = UnavailableError("down")


def start(queue: SyncQueue, now: float = 0.0) -> list[str]:
    """Return all pods that may be synced now."""
    started = []
    while (uid := queue.get(now)) is not None:
        started.append(str(uid))
    return started


def put(
    queue: SyncQueue, uid: PodUID, priority: Priority, now: float = 0.0, version: int = 1
) -> bool:
    return queue.add(uid, queue.state(uid, ApiUID(uid)), version, priority, now)


def add(queue: SyncQueue, *uids: PodUID, version: int = 1, now: float = 0.0) -> list[bool]:
    return [put(queue, uid, Priority.ORDINARY, now, version) for uid in uids]


def fail(queue: SyncQueue, uid: PodUID, error: Exception = DOWN, now: float = 0.0) -> list[str]:
    """Let a pod in flight fail; return the pods that may be retried because of it."""
    _, released = queue.failed(uid, 1, error, now=now, jitter=0)
    queue.done(uid)
    return [str(uid) for uid in released]


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_so_many_pods_are_under_way_at_once(in_flight: int) -> None:
    queue = SyncQueue(ParallelSyncOptions(in_flight=in_flight))
    add(queue, A, B, C)
    assert len(start(queue)) == in_flight
    queue.done(A)
    assert len(start(queue)) == (1 if in_flight < 3 else 0)


def test_a_pod_is_under_way_once_at_most() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A)
    assert start(queue) == ["a"]
    add(queue, A, B)
    assert start(queue) == ["b"]
    queue.done(A)
    assert start(queue) == []
    add(queue, A)
    assert start(queue) == ["a"]


def test_without_lanes_the_order_is_that_of_asking() -> None:
    for lanes, order in ((True, ["b", "a"]), (False, ["a", "b"])):
        queue = SyncQueue(ParallelSyncOptions(prioritize=lanes))
        put(queue, A, Priority.ORDINARY)
        put(queue, B, Priority.URGENT)
        assert start(queue) == order


def test_a_failed_pod_backs_off_and_has_a_wake_up() -> None:
    queue = SyncQueue(ParallelSyncOptions(initial_retry_seconds=2))
    add(queue, A)
    start(queue)
    fail(queue, A)
    assert add(queue, A, now=1.9) == [False]
    assert queue.next_wakeup(0) == 2
    assert queue.pop_due(2) == [A]
    assert add(queue, A, now=2) == [True]


def test_a_change_while_it_fails_does_not_let_a_pod_skip_its_wait() -> None:
    queue = SyncQueue(ParallelSyncOptions(in_flight=1))
    add(queue, A)
    start(queue)
    add(queue, A, version=2)
    fail(queue, A)
    assert start(queue) == []


def test_a_rejected_status_may_go_at_once_when_it_has_changed() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A)
    start(queue)
    fail(queue, A, api_error(422, "no"))
    assert add(queue, A) == [False]
    assert add(queue, A, version=2) == [True]


def test_a_status_that_is_rejected_again_wakes_up_earlier_when_it_changes() -> None:
    queue = SyncQueue(ParallelSyncOptions(initial_retry_seconds=2))
    for version in (1, 2):
        add(queue, A, version=version)
        start(queue)
        fail(queue, A, api_error(422, "no"))
    assert queue.next_wakeup(0) == 300
    assert add(queue, A, version=3) == [False]
    assert queue.next_wakeup(0) == 4


def outage(queue: SyncQueue, *pods: PodUID) -> None:
    """Let these pods fail as unavailable."""
    add(queue, *pods)
    start(queue)
    for uid in pods:
        fail(queue, uid)


def test_while_the_server_is_away_a_few_pods_at_a_time_are_tried() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=2, in_flight=8))
    outage(queue, A, B)
    add(queue, C, D)
    assert start(queue) == []
    assert queue.next_wakeup(0) == 0.5
    assert queue.next_wakeup(0.5) == 1, "the retry of a pod: probes may start now"
    assert start(queue, now=0.5) == ["c"]
    assert fail(queue, C, now=0.5) == []
    assert start(queue, now=0.6) == []


def test_when_the_server_is_back_those_who_looked_for_it_may_go_at_once() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=2, initial_retry_seconds=50, in_flight=8))
    outage(queue, A, B)
    add(queue, C, D)
    start(queue, now=1)
    fail(queue, C, now=1)
    assert start(queue, now=9) == ["d"]
    # C only failed as a probe; the failures of A and B may be specific to them.
    assert queue.succeeded(D) == [C]
    assert add(queue, A, B, C, now=9) == [False, False, True]


def test_only_failed_probes_are_retried_after_an_outage_and_only_once() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=1, initial_retry_seconds=50, in_flight=8))
    add(queue, A)
    start(queue)
    fail(queue, A, api_error(409, "conflict"))
    outage(queue, B)
    add(queue, C, now=1)
    start(queue, now=1)
    fail(queue, C, now=1)
    add(queue, D, now=9)
    start(queue, now=9)
    assert queue.succeeded(D) == [C]
    queue.done(D)
    outage(queue, D)
    add(queue, E, now=9)
    assert start(queue, now=9) == ["e"]
    assert queue.succeeded(E) == []


def test_a_refusal_too_shows_that_the_server_is_there() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=1, in_flight=8))
    outage(queue, A)
    add(queue, B, C)
    assert start(queue, now=1) == ["b"]
    fail(queue, B, api_error(422, "no"), now=1)
    assert not queue.is_circuit_open
    assert start(queue, now=1) == ["c"]


def test_what_is_broken_here_says_nothing_about_the_server() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=1))
    add(queue, A, B)
    start(queue)
    fail(queue, A, ZeroDivisionError())
    add(queue, C)
    assert start(queue) == ["c"]
    fail(queue, B)
    fail(queue, C, ZeroDivisionError())
    assert queue.is_circuit_open


def test_those_for_whom_it_may_help_get_a_last_chance() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=1))
    outage(queue, A)
    add(queue, B, now=1)
    start(queue, now=1)
    fail(queue, B, api_error(422, "no"), now=1)
    add(queue, C, now=1)
    start(queue, now=1)
    fail(queue, C, now=1)
    assert sorted(queue.retry_all_transient()) == ["a", "c"]
    add(queue, A, B, C, now=1)
    assert start(queue, now=1) == ["a", "c"]


def test_no_pod_is_in_flight_after_clear_in_flight() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A, B)
    start(queue)
    assert queue.clear_in_flight() == [A, B]
    add(queue, A)
    assert start(queue) == ["a"]


def test_a_pod_that_is_no_more_does_not_go() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A)
    queue.forget(A)
    assert start(queue) == []


def test_a_pod_that_is_forgotten_in_flight_still_has_an_unanswered_patch() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A)
    start(queue)
    queue.put(A, queue.state(A, ApiUID(A)).acknowledged(make_pod("a"), 7, 0).patch_started())
    queue.forget(A)
    state = queue.state(A, ApiUID(A))
    assert (state.in_flight, state.is_uncertain, state.may_land_late) == (True, True, True)
    assert (state.sent_version, state.server_copy) == (0, None)


def test_one_waiting_pod_is_enough_to_probe_the_server() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    assert not queue.allow_probe_now()
    add(queue, A)
    assert queue.allow_probe_now()


def test_without_back_off_there_is_no_wake_up() -> None:
    queue = SyncQueue(
        ParallelSyncOptions(initial_retry_seconds=0, max_retry_seconds=0, rejected_retry_seconds=0)
    )
    outage(queue, A)
    assert queue.next_wakeup(0) is None
    assert add(queue, A) == [True]


@pytest.mark.parametrize(
    "odd",
    [
        {"in_flight": 0},
        {"initial_retry_seconds": -1},
        {"initial_retry_seconds": 61},
        {"rejected_retry_seconds": 0.5},
        {"circuit_after": -1},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(odd: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ParallelSyncOptions(**odd)  # type: ignore[arg-type]


def test_urgent_pods_overtake_and_reconciles_come_last() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    put(queue, A, Priority.RECONCILE, 0)
    put(queue, B, Priority.ORDINARY, 1)
    put(queue, C, Priority.URGENT, 2)
    assert start(queue) == ["c", "b", "a"]


def test_within_a_lane_the_order_is_that_of_arrival() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, B, A, C, now=7)
    assert start(queue) == ["b", "a", "c"]


def test_after_the_maximum_wait_a_pod_is_not_overtaken() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    for priority, seconds in ((Priority.ORDINARY, 30), (Priority.RECONCILE, 60)):
        put(queue, A, priority, 0)
        put(queue, B, Priority.URGENT, seconds - 0.5)
        put(queue, C, Priority.URGENT, seconds + 0.5)
        assert start(queue) == ["b", "a", "c"]
        queue.clear_in_flight()


def test_a_queued_pod_can_move_forward_but_not_back() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    for uid, priority in ((A, Priority.RECONCILE), (B, Priority.ORDINARY), (A, Priority.URGENT)):
        put(queue, uid, priority)
    put(queue, A, Priority.RECONCILE)
    assert start(queue) == ["a", "b"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(Priority), st.integers(0, 99)),
        max_size=20,
    )
)
def test_each_pod_starts_once_in_the_order_of_the_deadlines(
    puts: list[tuple[str, Priority, int]],
) -> None:
    queue, due = SyncQueue(ParallelSyncOptions()), dict[str, float]()
    for name, lane, now in puts:
        put(queue, PodUID(name), lane, now)
        due[name] = min(due.get(name, float("inf")), now + lane.value)
    order = start(queue)
    assert sorted(order) == sorted(due)
    assert [due[name] for name in order] == sorted(due.values())


def test_of_two_wake_ups_of_a_pod_the_earlier_counts() -> None:
    queue = SyncQueue(ParallelSyncOptions(initial_retry_seconds=2))
    add(queue, A)
    start(queue)
    fail(queue, A, api_error(422, "no"))  # retried after 300 s, with another version now
    assert queue.next_wakeup(0) == 300
    add(queue, A, version=2)
    start(queue)
    fail(queue, A, now=1)
    assert queue.next_wakeup(1) == 5
    assert queue.pop_due(5) == [A]
    assert queue.pop_due(400) == []


def test_only_retained_pods_have_a_state() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A, B, C)
    assert start(queue) == ["a", "b", "c"]
    fail(queue, A)
    queue.done(B)
    queue.retain_only({B})
    assert (len(queue), queue.is_healthy) == (2, True)  # C is in flight
    queue.done(C)
    queue.retain_only({B})
    assert len(queue) == 1


def test_another_mirror_pod_starts_without_the_history_of_the_last_one() -> None:
    queue = SyncQueue(ParallelSyncOptions())
    add(queue, A)
    start(queue)
    fail(queue, A)
    assert queue.state(A, ApiUID("mirror-2")).retry is None
    assert queue.is_healthy


def test_a_probe_that_reads_its_pod_closes_the_circuit_and_keeps_its_failures() -> None:
    queue = SyncQueue(ParallelSyncOptions(circuit_after=1))
    outage(queue, A)
    add(queue, A, now=9)
    assert start(queue, now=9) == ["a"]
    assert queue.state(A, ApiUID(A)).is_probe
    assert queue.succeeded(A) == []
    queue.done(A)
    assert not queue.state(A, ApiUID(A)).is_probe
    assert not queue.is_circuit_open
    assert add(queue, A, now=9) == [True]
    start(queue, now=9)
    retry, _ = queue.failed(A, 1, DOWN, now=9, jitter=0)
    assert retry.failures == 2
