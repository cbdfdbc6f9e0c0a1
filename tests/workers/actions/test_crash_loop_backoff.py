"""Delays of a crash-looping container."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff

UID = PodUID("u")
BEGIN = Time.parse("2024-06-01T12:00:00Z")
BOOTED_SECONDS = 5000
SECOND = 10**9


def after(seconds: float) -> Time:
    """The wall clock, which is set nowhere."""
    return Time(BEGIN + round(seconds * SECOND))


def started(
    loops: CrashLoopBackoff,
    at: float,
    *,
    last_exit: Time | None,
    container: str = "a",
    uid: PodUID = UID,
) -> CrashLoopBackoff:
    return loops.started(uid, container, last_exit, after(at), mono(at))


def exited(
    loops: CrashLoopBackoff, at: float, *, seen: float | None = None, ahead: float = 0
) -> CrashLoopBackoff:
    """The runtime records an exit; the wall clock of the agent is `ahead` of the runtime's."""
    seen = at if seen is None else seen
    return loops.exited(UID, {"a": after(at)}, after(seen + ahead), mono(seen))


def remaining(loops: CrashLoopBackoff, at: float) -> float:
    return loops.remaining(UID, "a", mono(at))


def mono(seconds: float) -> int:
    return round((BOOTED_SECONDS + seconds) * SECOND)


def restarted(exit_at: float = 0, at: float = 0) -> CrashLoopBackoff:
    """After the first exit and restart: the next delay is 10 s."""
    return started(CrashLoopBackoff(), at, last_exit=after(exit_at))


def waits(loops: CrashLoopBackoff, *, runs_for: float, exits: int, ahead: float = 0) -> list[float]:
    """The delay after each exit, if every run takes this long."""
    clock, seen = 0.0, []
    for _ in range(exits):
        clock += runs_for
        last_exit = after(clock)
        loops = exited(loops, clock, ahead=ahead)
        left = remaining(loops, clock)
        seen.append(left)
        clock += left
        assert remaining(loops, clock) == 0
        loops = loops.started(UID, "a", last_exit, after(clock + ahead), mono(clock))
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
        (1, 2, [0, 1, 1]),
    ],
)
@pytest.mark.parametrize("ahead", [0, 3600, -3600, 20, -20])
def test_each_restart_waits_longer_whatever_the_wall_clock_of_the_runtime(
    max_seconds: float, runs_for: float, expected: list[float], ahead: float
) -> None:
    loops = CrashLoopBackoff(max_seconds=max_seconds)
    if abs(ahead) < runs_for:
        ahead *= 3600  # a difference below the run time cannot be told from a late observation
    assert waits(loops, runs_for=runs_for, exits=len(expected), ahead=ahead) == expected


def test_after_a_long_run_it_begins_again() -> None:
    loops = started(exited(restarted(), 4), 14, last_exit=after(4))
    assert loops.delay(UID, "a") == 20
    loops = exited(loops, 700)
    assert loops.delay(UID, "a") == 0
    loops = started(loops, 700, last_exit=after(700))
    assert loops.delay(UID, "a") == 10


def test_the_wait_is_counted_from_the_exit() -> None:
    loops = exited(restarted(), 5, seen=6)
    assert remaining(loops, 6) == 9
    assert remaining(loops, 12.5) == 2.5
    assert remaining(loops, 15) == 0


def test_a_container_may_exit_at_the_moment_of_its_start() -> None:
    assert remaining(exited(restarted(exit_at=-1), 0, seen=3), 3) == 7


def test_an_exit_is_recorded_once() -> None:
    loops = exited(restarted(), 5)
    assert exited(loops, 5, seen=8, ahead=-3600) is loops


def test_a_container_that_never_restarted_has_no_record() -> None:
    loops = CrashLoopBackoff()
    assert exited(loops, 5) is loops


def test_a_first_start_is_no_restart() -> None:
    loops = CrashLoopBackoff()
    assert started(loops, 0, last_exit=None) is loops


def test_after_a_failed_start_the_wait_counts_from_the_exit_before_it() -> None:
    loops = restarted(exit_at=0, at=1)
    assert remaining(loops, 4) == 6
    loops = started(loops, 10, last_exit=after(0))
    assert remaining(loops, 15) == 5


def test_an_exit_before_the_agent_started_counts_as_recorded() -> None:
    loops = restarted(exit_at=-8)
    assert remaining(loops, 0) == 2
    assert remaining(restarted(exit_at=3600), 0) == 10  # the wall clock was set back


@given(ahead=st.integers(-7200, 7200), runs_for=st.integers(0, 600), late=st.integers(0, 2))
def test_a_jump_of_the_wall_clock_moves_an_exit_at_most_to_the_start_or_to_now(
    ahead: int, runs_for: int, late: int
) -> None:
    seen = runs_for + late
    loops = exited(restarted(exit_at=-1), runs_for, seen=seen, ahead=ahead)
    assert max(0, 10 - seen) <= remaining(loops, seen) <= 10


def test_an_exit_of_unknown_time_does_not_end_the_wait() -> None:
    loops = started(CrashLoopBackoff(), 0, last_exit=UNSET_TIME)
    assert remaining(loops, 3) == 7
    assert started(loops, 10, last_exit=UNSET_TIME).delay(UID, "a") == 20


def test_containers_and_pods_wait_apart() -> None:
    loops = restarted()
    assert loops.delay(UID, "b") == 0
    assert loops.delay(PodUID("v"), "a") == 0


def test_a_pod_is_forgotten_and_the_others_are_not() -> None:
    other = PodUID("v")
    loops = started(restarted(), 0, last_exit=BEGIN, uid=other)
    left = loops.without_pod(UID)
    assert (left.delay(UID, "a"), left.delay(other, "a")) == (0, 10)
    assert left.without_pod(UID) is left


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_longest_wait_of_nothing_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"^max_seconds is {seconds}; .* more than 0"):
        CrashLoopBackoff(max_seconds=seconds)


def test_the_longest_delay_is_five_minutes_by_default() -> None:
    assert waits(CrashLoopBackoff(), runs_for=2, exits=8)[-2:] == [300, 300]
