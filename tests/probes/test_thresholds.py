"""When checks add up to a verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.containers import Probe
from podstatus.probes.thresholds import Kind, Outcome, Row, Rules, count, first_due, rules_of

OUTCOMES = {"+": Outcome.SUCCESS, "-": Outcome.FAILURE, "?": Outcome.UNKNOWN}


def rules(*, failures: int = 3, successes: int = 1, initial_delay: int = 0) -> Rules:
    return Rules(
        initial_delay=initial_delay, period=10, timeout=1, successes=successes, failures=failures
    )


def verdicts(kind: Kind, numbers: Rules, outcomes: str) -> str:
    """A letter for each check: `T`, `F`, or `.` where nothing changes."""
    row, said = Row(), ""
    for outcome in outcomes:
        counted = count(kind, numbers, row, OUTCOMES[outcome])
        row = counted.row
        said += {True: "T", False: "F", None: "."}[counted.verdict]
    return said


@pytest.mark.parametrize(
    ("kind", "numbers", "outcomes", "said"),
    [
        (Kind.READINESS, rules(), "+---++", "T..FTT"),
        (Kind.READINESS, rules(), "--+--+", "..T..T"),
        (Kind.READINESS, rules(failures=1), "-+-+", "FTFT"),
        (Kind.READINESS, rules(successes=3), "++-+++", ".....T"),
        (Kind.READINESS, rules(failures=2), "----", ".FFF"),
        (Kind.READINESS, rules(), "--?-", "...F"),
        (Kind.READINESS, rules(successes=2), "+?+", "..T"),
        (Kind.LIVENESS, rules(), "+---+++", "T..F..."),
        (Kind.LIVENESS, rules(failures=1), "+-+", "TF."),
        (Kind.STARTUP, rules(failures=2), "-+++", ".T.."),
        (Kind.STARTUP, rules(failures=2), "--++", ".F.."),
        (Kind.STARTUP, rules(failures=1), "???-", "...F"),
    ],
)
def test_verdicts_come_with_the_thresholds(
    kind: Kind, numbers: Rules, outcomes: str, said: str
) -> None:
    assert verdicts(kind, numbers, outcomes) == said


@given(
    kind=st.sampled_from(Kind),
    failures=st.integers(1, 4),
    successes=st.integers(1, 4),
    outcomes=st.text("+-?", max_size=30),
)
def test_a_verdict_is_n_checks_in_a_row_and_nothing_else(
    kind: Kind, failures: int, successes: int, outcomes: str
) -> None:
    numbers = rules(failures=failures, successes=successes)
    said = verdicts(kind, numbers, outcomes)
    needed = {"T": "+" * successes, "F": "-" * failures}
    is_over = False
    for end, verdict in enumerate(said, 1):
        made = outcomes[:end].replace("?", "")
        due = [v for v, row in needed.items() if made.endswith(row) and outcomes[end - 1] != "?"]
        assert verdict == (due[0] if due and not is_over else ".")
        is_over |= verdict == "F" and kind is Kind.LIVENESS
        is_over |= verdict != "." and kind is Kind.STARTUP


@pytest.mark.parametrize(
    ("probe", "numbers"),
    [
        (Probe(), Rules(initial_delay=0, period=10, timeout=1, successes=1, failures=3)),
        (
            Probe(
                initial_delay_seconds=5,
                period_seconds=2,
                timeout_seconds=3,
                success_threshold=4,
                failure_threshold=6,
            ),
            Rules(initial_delay=5, period=2, timeout=3, successes=4, failures=6),
        ),
        (
            Probe(initial_delay_seconds=-1, period_seconds=-1),
            Rules(initial_delay=0, period=10, timeout=1, successes=1, failures=3),
        ),
    ],
)
def test_numbers_that_are_missing_are_those_of_the_api_server(probe: Probe, numbers: Rules) -> None:
    assert rules_of(probe) == numbers


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
