"""Which rule is at fault when a process that evaluates rules has ended."""

from signal import SIGABRT, SIGKILL, SIGPROF, SIGSEGV, SIGTERM

import pytest

from podstatus.alerts.evaluator.budget import OUT_OF_MEMORY_CODE
from podstatus.alerts.evaluator.crash_attribution import Death, Faults, SwitchOff, TakeApart, Wait


@pytest.mark.parametrize("code", [-SIGPROF, -SIGABRT, -SIGSEGV, OUT_OF_MEMORY_CODE])
def test_what_a_rule_does_to_the_process_is_its_own_fault(code: int) -> None:
    faults = Faults()
    verdict = faults.judge(Death(code=code, rules=("Bad",)))
    assert isinstance(verdict, SwitchOff)
    assert verdict.rule == "Bad"
    assert faults.judge(Death(code=code, rules=("A", "B"))) == TakeApart(("A", "B"))
    assert faults.judge(Death(code=code)) == Wait()


@pytest.mark.parametrize("code", [-SIGKILL, -SIGTERM, 1, None])
def test_what_is_done_from_outside_is_blamed_on_a_rule_only_if_it_happens_again(
    code: int | None,
) -> None:
    faults = Faults()
    assert faults.judge(Death(code=code, rules=("A",))) == Wait()
    assert faults.judge(Death(code=code, rules=("B",))) == Wait()
    assert faults.judge(Death(code=code, rules=("A", "B"))) == Wait()
    assert isinstance(faults.judge(Death(code=code, rules=("A",))), SwitchOff)
    assert faults.judge(Death(code=code, rules=("A", "B"))) == TakeApart(("A", "B"))
    assert [faults.judge(Death(code=code)) for _ in range(5)] == [Wait()] * 5


def test_a_death_is_told_in_words() -> None:
    assert str(Death(code=-SIGKILL)) == "it was ended by SIGKILL"
    assert str(Death(code=3)) == "it ended with 3"
    assert str(Death(code=None)) == "it made no progress"
