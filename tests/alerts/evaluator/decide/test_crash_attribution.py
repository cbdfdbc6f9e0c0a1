"""Which rule is at fault when an evaluator process died."""

from signal import SIGABRT, SIGKILL, SIGPROF, SIGSEGV, SIGTERM

import pytest

from podstatus.alerts.evaluator.decide.budget import OUT_OF_MEMORY_CODE
from podstatus.alerts.evaluator.decide.crash_attribution import (
    CrashAttribution,
    DisableRule,
    IsolateRules,
    RestartLater,
    WorkerExit,
)


@pytest.mark.parametrize("code", [-SIGPROF, -SIGABRT, -SIGSEGV, OUT_OF_MEMORY_CODE])
def test_what_a_rule_does_to_the_process_is_its_own_fault(code: int) -> None:
    faults = CrashAttribution()
    verdict = faults.decide(WorkerExit(code=code, rules=("Bad",)))
    assert isinstance(verdict, DisableRule)
    assert verdict.rule == "Bad"
    assert faults.decide(WorkerExit(code=code, rules=("A", "B"))) == IsolateRules(("A", "B"))
    assert faults.decide(WorkerExit(code=code)) == RestartLater()


@pytest.mark.parametrize("code", [-SIGKILL, -SIGTERM, 1, None])
def test_what_is_done_from_outside_is_blamed_on_a_rule_only_if_it_happens_again(
    code: int | None,
) -> None:
    faults = CrashAttribution()
    assert faults.decide(WorkerExit(code=code, rules=("A",))) == RestartLater()
    assert faults.decide(WorkerExit(code=code, rules=("B",))) == RestartLater()
    assert faults.decide(WorkerExit(code=code, rules=("A", "B"))) == RestartLater()
    assert isinstance(faults.decide(WorkerExit(code=code, rules=("A",))), DisableRule)
    assert faults.decide(WorkerExit(code=code, rules=("A", "B"))) == IsolateRules(("A", "B"))
    assert [faults.decide(WorkerExit(code=code)) for _ in range(5)] == [RestartLater()] * 5


def test_an_exit_is_described_in_words() -> None:
    assert str(WorkerExit(code=-SIGKILL)) == "it was killed by SIGKILL"
    assert str(WorkerExit(code=3)) == "it exited with 3"
    assert str(WorkerExit(code=None)) == "it made no progress"
