import pytest

from podstatus.kube.errors import UnavailableError, api_error
from podstatus.kube.objects.pod import ApiUID, PodUID
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.retry import SyncAttempt
from podstatus.status.sync.state.workqueue import Priority, SyncQueue

A, B, C = PodUID("a"), PodUID("b"), PodUID("c")
DOWN = UnavailableError("down")


def fly(schedule: SyncQueue, now: float = 0.0) -> list[str]:
    """Return all pods that may be synced now."""
    flying = []
    while (uid := schedule.get(now)) is not None:
        flying.append(str(uid))
    return flying


def want(schedule: SyncQueue, *uids: PodUID, version: int = 1, now: float = 0.0) -> list[bool]:
    return [schedule.add(uid, version, Priority.ORDINARY, now) for uid in uids]


def fail(schedule: SyncQueue, uid: PodUID, error: Exception = DOWN, now: float = 0.0) -> list[str]:
    """Let a pod in flight fail; return the pods that may be retried because of it."""
    attempt = SyncAttempt(ApiUID(uid), 1)
    _, released = schedule.failed(uid, attempt, error, now=now, jitter=0)
    schedule.done(uid)
    return [str(uid) for uid in released]


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_so_many_pods_are_under_way_at_once(in_flight: int) -> None:
    schedule = SyncQueue(ParallelSyncOptions(in_flight=in_flight))
    want(schedule, A, B, C)
    assert len(fly(schedule)) == in_flight
    schedule.done(A)
    assert len(fly(schedule)) == (1 if in_flight < 3 else 0)


def test_a_pod_is_under_way_once_at_most() -> None:
    schedule = SyncQueue(ParallelSyncOptions())
    want(schedule, A)
    assert fly(schedule) == ["a"]
    want(schedule, A, B)
    assert fly(schedule) == ["b"]
    schedule.done(A)
    assert fly(schedule) == []
    want(schedule, A)
    assert fly(schedule) == ["a"]


def test_without_lanes_the_order_is_that_of_asking() -> None:
    for lanes, order in ((True, ["b", "a"]), (False, ["a", "b"])):
        schedule = SyncQueue(ParallelSyncOptions(prioritize=lanes))
        schedule.add(A, 1, Priority.ORDINARY, 0)
        schedule.add(B, 1, Priority.URGENT, 0)
        assert fly(schedule) == order


def test_a_failed_pod_backs_off_and_has_a_wake_up() -> None:
    schedule = SyncQueue(ParallelSyncOptions(initial_retry_seconds=2))
    want(schedule, A)
    fly(schedule)
    fail(schedule, A)
    assert want(schedule, A, now=1.9) == [False]
    assert schedule.next_wakeup(0) == 2
    assert schedule.pop_due(2) == [A]
    assert want(schedule, A, now=2) == [True]


def test_a_change_while_it_fails_does_not_let_a_pod_skip_its_wait() -> None:
    schedule = SyncQueue(ParallelSyncOptions(in_flight=1))
    want(schedule, A)
    fly(schedule)
    want(schedule, A, version=2)
    fail(schedule, A)
    assert fly(schedule) == []


def test_a_rejected_status_may_go_at_once_when_it_has_changed() -> None:
    schedule = SyncQueue(ParallelSyncOptions())
    want(schedule, A)
    fly(schedule)
    fail(schedule, A, api_error(422, "no"))
    assert want(schedule, A) == [False]
    assert want(schedule, A, version=2) == [True]


def outage(schedule: SyncQueue, *pods: PodUID) -> None:
    """Let these pods fail as unavailable."""
    want(schedule, *pods)
    fly(schedule)
    for uid in pods:
        fail(schedule, uid)


def test_while_the_server_is_away_a_few_pods_at_a_time_are_tried() -> None:
    schedule = SyncQueue(ParallelSyncOptions(circuit_after=2, in_flight=8))
    outage(schedule, A, B)
    want(schedule, C, PodUID("d"))
    assert fly(schedule) == []
    assert schedule.next_wakeup(0) == 0.5
    assert fly(schedule, now=0.5) == ["c"]
    assert fail(schedule, C, now=0.5) == []
    assert fly(schedule, now=0.6) == []


def test_when_the_server_is_back_those_who_looked_for_it_may_go_at_once() -> None:
    schedule = SyncQueue(
        ParallelSyncOptions(circuit_after=2, initial_retry_seconds=50, in_flight=8)
    )
    outage(schedule, A, B)
    want(schedule, C, PodUID("d"))
    fly(schedule, now=1)
    fail(schedule, C, now=1)
    assert fly(schedule, now=9) == ["d"]
    # C only failed as a probe; the failures of A and B may be specific to them.
    assert schedule.succeeded(PodUID("d")) == [C]
    assert want(schedule, A, B, C, now=9) == [False, False, True]


def test_a_refusal_too_shows_that_the_server_is_there() -> None:
    schedule = SyncQueue(ParallelSyncOptions(circuit_after=1, in_flight=8))
    outage(schedule, A)
    want(schedule, B, C)
    assert fly(schedule, now=1) == ["b"]
    fail(schedule, B, api_error(422, "no"), now=1)
    assert fly(schedule, now=1) == ["c"]


def test_what_is_broken_here_says_nothing_about_the_server() -> None:
    schedule = SyncQueue(ParallelSyncOptions(circuit_after=1))
    want(schedule, A, B)
    fly(schedule)
    fail(schedule, A, ZeroDivisionError())
    want(schedule, C)
    assert fly(schedule) == ["c"]


def test_those_for_whom_it_may_help_get_a_last_chance() -> None:
    schedule = SyncQueue(ParallelSyncOptions(circuit_after=1))
    outage(schedule, A)
    want(schedule, B, now=1)
    fly(schedule, now=1)
    fail(schedule, B, api_error(422, "no"), now=1)
    want(schedule, C, now=1)
    fly(schedule, now=1)
    fail(schedule, C, now=1)
    assert sorted(schedule.retry_all_transient()) == ["a", "c"]
    want(schedule, A, B, C, now=1)
    assert fly(schedule, now=1) == ["a", "c"]


def test_no_pod_is_in_flight_after_clear_in_flight() -> None:
    schedule = SyncQueue(ParallelSyncOptions())
    want(schedule, A, B)
    fly(schedule)
    assert schedule.clear_in_flight() == {A, B}
    want(schedule, A)
    assert fly(schedule) == ["a"]


def test_a_pod_that_is_no_more_does_not_go() -> None:
    schedule = SyncQueue(ParallelSyncOptions())
    want(schedule, A)
    schedule.forget(A)
    assert fly(schedule) == []


def test_without_back_off_there_is_no_wake_up() -> None:
    schedule = SyncQueue(
        ParallelSyncOptions(initial_retry_seconds=0, max_retry_seconds=0, rejected_retry_seconds=0)
    )
    outage(schedule, A)
    assert schedule.next_wakeup(0) is None
    assert want(schedule, A) == [True]


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
