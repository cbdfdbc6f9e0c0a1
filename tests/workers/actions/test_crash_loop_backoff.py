"""Delays of a crash-looping container."""

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff

UID = PodUID("u")
BEGIN = Time.parse("2024-06-01T12:00:00Z")


def after(seconds: float) -> Time:
    return Time(BEGIN + round(seconds * 10**9))


def waits(loops: CrashLoopBackoff, *, runs_for: float, exits: int) -> list[float]:
    """The delay after each exit, if every run takes this long."""
    clock, seen = 0.0, []
    for _ in range(exits):
        clock += runs_for
        exit_ = after(clock)
        left = loops.remaining(UID, "a", exit_, exit_)
        seen.append(left)
        clock += left
        assert loops.remaining(UID, "a", exit_, after(clock)) == 0
        loops = loops.started(UID, "a", exit_, after(clock))
    return seen


@pytest.mark.parametrize(
    ("max_seconds", "runs_for", "expected"),
    [
        # As recorded in crash-loop-two-restarts, continued with upstream's constants.
        (300, 2, [0, 10, 20, 40, 80, 160, 300, 300]),
        (300, 599, [0, 10, 20, 40, 80, 160, 300, 300]),
        (300, 600, [0, 10, 20, 40, 80, 160, 300, 300]),
        # Each run takes more than ten minutes, which resets the back-off.
        (300, 601, [0, 0, 0]),
        (60, 2, [0, 10, 20, 40, 60, 60]),
        (4, 2, [0, 4, 4, 4]),
    ],
)
def test_each_restart_waits_longer(
    max_seconds: float, runs_for: float, expected: list[float]
) -> None:
    loops = CrashLoopBackoff(max_seconds=max_seconds)
    assert waits(loops, runs_for=runs_for, exits=len(expected)) == expected


def test_after_a_long_run_it_begins_again() -> None:
    loops = (
        CrashLoopBackoff()
        .started(UID, "a", after(2), after(2))
        .started(UID, "a", after(4), after(14))
    )
    assert loops.delay(UID, "a", after(16)) == 20
    recovered = loops.started(UID, "a", after(700), after(700))
    assert recovered.delay(UID, "a", after(702)) == 10


def test_the_wait_is_counted_from_the_exit() -> None:
    loops = CrashLoopBackoff().started(UID, "a", after(0), after(0))
    assert loops.remaining(UID, "a", after(5), after(5)) == 10
    assert loops.remaining(UID, "a", after(5), after(12.5)) == 2.5
    assert loops.remaining(UID, "a", after(5), after(15)) == 0


def test_a_first_start_is_no_restart() -> None:
    loops = CrashLoopBackoff()
    assert loops.started(UID, "a", None, BEGIN) is loops


def test_a_clock_that_was_set_back_makes_no_endless_wait() -> None:
    loops = CrashLoopBackoff().started(UID, "a", after(0), after(0))
    assert loops.remaining(UID, "a", after(8), after(0)) == 10
    assert loops.remaining(UID, "a", after(500), after(0)) == 0


def test_an_exit_of_unknown_time_does_not_end_the_wait() -> None:
    loops = CrashLoopBackoff().started(UID, "a", UNSET_TIME, after(0))
    assert loops.remaining(UID, "a", UNSET_TIME, after(3)) == 7
    assert loops.started(UID, "a", UNSET_TIME, after(10)).delay(UID, "a", UNSET_TIME) == 20


def test_containers_and_pods_wait_apart() -> None:
    loops = CrashLoopBackoff().started(UID, "a", BEGIN, BEGIN)
    assert loops.delay(UID, "b", BEGIN) == 0
    assert loops.delay(PodUID("v"), "a", BEGIN) == 0


def test_a_pod_is_forgotten_and_the_others_are_not() -> None:
    other = PodUID("v")
    loops = CrashLoopBackoff().started(UID, "a", BEGIN, BEGIN).started(other, "a", BEGIN, BEGIN)
    left = loops.without_pod(UID)
    assert (left.delay(UID, "a", BEGIN), left.delay(other, "a", BEGIN)) == (0, 10)
    assert left.without_pod(UID) is left


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_longest_wait_of_nothing_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="more than 0"):
        CrashLoopBackoff(max_seconds=seconds)


def test_the_longest_delay_is_five_minutes_by_default() -> None:
    assert waits(CrashLoopBackoff(), runs_for=2, exits=8)[-2:] == [300, 300]
