"""When an agent hangs, as a table and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.agent.daemon.decide.hang import Hang, HangLimits, HangWatch, HealthReport

LIMITS = HangLimits()
SERVING = HealthReport(serving=True)
STALLED = HealthReport(serving=True, stalled=("lease was last active 70 s ago; threshold is 60 s",))
LATE = 100_000.0
"""Some time after the start of the machine, in seconds."""


def nanos(seconds: float) -> int:
    return round((LATE + seconds) * 1e9)


class Story:
    """An agent that is checked twice a second, unless time is skipped."""

    def __init__(self, limits: HangLimits = LIMITS) -> None:
        self.limits = limits
        self.at = 0.0
        self.watch = HangWatch.start(nanos(0))
        self.replaced_at: int | None = None

    def passes(self, seconds: float, report: HealthReport | None = None) -> Hang | None:
        """Time passes, with this report once a second; the first hang that is found."""
        end = self.at + seconds
        while self.at < end:
            self.at += 0.5
            if report is not None and self.at % 1 == 0:
                self.watch = self.watch.add_report(report, nanos(self.at))
            self.watch = self.watch.add_check(nanos(self.at), self.limits)
            if hang := self.hang():
                return hang
        return None

    def hang(self) -> Hang | None:
        return self.watch.find_hang(
            nanos(self.at), self.limits, replaced_stalled_at=self.replaced_at
        )

    def skip(self, seconds: float) -> None:
        """Time passes in which nothing is checked."""
        self.at += seconds


@pytest.mark.parametrize(("before", "limit"), [(None, 300), (HealthReport(), 300), (SERVING, 15)])
def test_an_agent_may_be_silent_for_longer_before_it_has_served(
    before: HealthReport | None, limit: float
) -> None:
    story = Story()
    assert story.passes(2, before) is None
    begin = story.at if before else 0
    assert story.passes(begin + limit - story.at - 0.5) is None
    hang = story.passes(1)
    assert story.at == begin + limit
    during = " during its start" if limit == 300 else ""
    assert hang == Hang(reason=f"its event loop was silent for {limit} s{during}")


def test_an_agent_that_stops_has_the_same_limit_as_one_that_serves() -> None:
    story = Story()
    story.passes(3, SERVING)
    story.passes(3, HealthReport(stopping=True))
    assert story.passes(14) is None
    assert story.passes(1) is not None


def test_a_stalled_service_counts_if_it_is_reported_without_a_break() -> None:
    story = Story()
    assert story.passes(59, STALLED) is None
    assert story.passes(1, SERVING) is None
    assert story.passes(60, STALLED) is None
    hang = story.passes(2, STALLED)
    assert hang == Hang(reason=STALLED.stalled[0], by_service=True)


@pytest.mark.parametrize(("minutes", "is_replaced"), [(58, False), (60, True)])
def test_an_agent_is_replaced_for_a_stalled_service_once_an_hour(
    minutes: float, is_replaced: bool
) -> None:
    story = Story()
    story.replaced_at = nanos(-minutes * 60)
    assert bool(story.passes(61, STALLED)) is is_replaced
    assert story.passes(16) is not None  # silence always counts


@pytest.mark.parametrize("report", [SERVING, STALLED])
def test_time_in_which_the_supervisor_did_not_run_is_no_silence(report: HealthReport) -> None:
    story = Story()
    story.passes(10, report)
    story.skip(3600)
    assert story.passes(14) is None
    assert story.passes(2) is not None


def test_a_service_that_a_suspended_machine_has_stalled_gets_a_new_period() -> None:
    story = Story()
    story.passes(58, STALLED)
    story.skip(3600)
    assert story.passes(59, STALLED) is None
    assert story.passes(2, STALLED) is not None


@given(st.lists(st.floats(0.01, 14.9), min_size=1, max_size=40), st.floats(0.1, 60))
def test_reports_that_are_late_by_less_than_the_limit_are_never_a_hang(
    delays: list[float], check_every: float
) -> None:
    watch, at, checked = HangWatch.start(nanos(0)).add_report(SERVING, nanos(0)), 0.0, 0.0
    for delay in delays:
        while checked + check_every <= at + delay:
            checked += check_every
            watch = watch.add_check(nanos(checked), LIMITS)
            assert watch.find_hang(nanos(checked), LIMITS) is None
        at += delay
        watch = watch.add_report(SERVING, nanos(at))


@given(st.floats(0.1, 4.9), st.floats(0, 1000))
def test_an_agent_that_falls_silent_is_found_within_the_limit_and_one_check(
    check_every: float, serves_for: float
) -> None:
    silent_since = nanos(serves_for)
    watch = HangWatch.start(silent_since).add_report(SERVING, silent_since)
    at = serves_for
    while at < serves_for + LIMITS.silent + check_every:
        at += check_every
        watch = watch.add_check(nanos(at), LIMITS)
    assert watch.find_hang(nanos(at), LIMITS) is not None
