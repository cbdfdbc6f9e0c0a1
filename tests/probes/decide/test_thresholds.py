"""Probe thresholds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.containers import Probe
from podstatus.probes.decide.thresholds import (
    CheckOutcome,
    ProbeSettings,
    ProbeType,
    Streak,
    first_due,
    probe_settings,
    record_check,
)

OUTCOMES = {"+": CheckOutcome.SUCCESS, "-": CheckOutcome.FAILURE, "?": CheckOutcome.UNKNOWN}


def rules(*, failures: int = 3, successes: int = 1, initial_delay: int = 0) -> ProbeSettings:
    return ProbeSettings(
        initial_delay=initial_delay, period=10, timeout=1, successes=successes, failures=failures
    )


def verdicts(kind: ProbeType, numbers: ProbeSettings, outcomes: str) -> str:
    """A letter per check: `T`, `F`, or `.` for no result."""
    row, said = Streak(), ""
    for outcome in outcomes:
        counted = record_check(kind, numbers, row, OUTCOMES[outcome])
        row = counted.streak
        said += {True: "T", False: "F", None: "."}[counted.result]
    return said


@pytest.mark.parametrize(
    ("kind", "numbers", "outcomes", "said"),
    [
        (ProbeType.READINESS, rules(), "+---++", "T..FTT"),
        (ProbeType.READINESS, rules(), "--+--+", "..T..T"),
        (ProbeType.READINESS, rules(failures=1), "-+-+", "FTFT"),
        (ProbeType.READINESS, rules(successes=3), "++-+++", ".....T"),
        (ProbeType.READINESS, rules(failures=2), "----", ".FFF"),
        (ProbeType.READINESS, rules(), "--?-", "...F"),
        (ProbeType.READINESS, rules(successes=2), "+?+", "..T"),
        (ProbeType.LIVENESS, rules(), "+---+++", "T..F..."),
        (ProbeType.LIVENESS, rules(failures=1), "+-+", "TF."),
        (ProbeType.STARTUP, rules(failures=2), "-+++", ".T.."),
        (ProbeType.STARTUP, rules(failures=2), "--++", ".F.."),
        (ProbeType.STARTUP, rules(failures=1), "???-", "...F"),
    ],
)
def test_verdicts_come_with_the_thresholds(
    kind: ProbeType, numbers: ProbeSettings, outcomes: str, said: str
) -> None:
    assert verdicts(kind, numbers, outcomes) == said


@given(
    kind=st.sampled_from(ProbeType),
    failures=st.integers(1, 4),
    successes=st.integers(1, 4),
    outcomes=st.text("+-?", max_size=30),
)
def test_a_verdict_is_n_checks_in_a_row_and_nothing_else(
    kind: ProbeType, failures: int, successes: int, outcomes: str
) -> None:
    numbers = rules(failures=failures, successes=successes)
    said = verdicts(kind, numbers, outcomes)
    needed = {"T": "+" * successes, "F": "-" * failures}
    is_over = False
    for end, verdict in enumerate(said, 1):
        made = outcomes[:end].replace("?", "")
        due = [v for v, row in needed.items() if made.endswith(row) and outcomes[end - 1] != "?"]
        assert verdict == (due[0] if due and not is_over else ".")
        is_over |= verdict == "F" and kind is ProbeType.LIVENESS
        is_over |= verdict != "." and kind is ProbeType.STARTUP


@pytest.mark.parametrize(
    ("probe", "numbers"),
    [
        (Probe(), ProbeSettings(initial_delay=0, period=10, timeout=1, successes=1, failures=3)),
        (
            Probe(
                initial_delay_seconds=5,
                period_seconds=2,
                timeout_seconds=3,
                success_threshold=4,
                failure_threshold=6,
            ),
            ProbeSettings(initial_delay=5, period=2, timeout=3, successes=4, failures=6),
        ),
        (
            Probe(initial_delay_seconds=-1, period_seconds=-1),
            ProbeSettings(initial_delay=0, period=10, timeout=1, successes=1, failures=3),
        ),
    ],
)
def test_numbers_that_are_missing_are_those_of_the_api_server(
    probe: Probe, numbers: ProbeSettings
) -> None:
    assert probe_settings(probe) == numbers


@pytest.mark.parametrize(
    ("delay", "runs_for", "due"),
    [
        (0, 0.0, 0.0),
        (5, 0.0, 5.0),
        (5, 3.5, 1.5),
        (5, 60.0, 0.0),
        (5, -3600.0, 5.0),  # the clock was set back meanwhile
        (0, -3600.0, 0.0),
    ],
)
def test_the_delay_counts_from_the_start_of_the_container(
    delay: int, runs_for: float, due: float
) -> None:
    assert first_due(rules(initial_delay=delay), runs_for) == due
