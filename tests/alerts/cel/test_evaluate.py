"""Rules that use more than their share of a round are disabled, and no others."""

from collections.abc import Sequence

from podstatus.alerts.cel.compile_rule import compile_checked
from podstatus.alerts.cel.evaluate import RuleEvaluation
from podstatus.alerts.evaluator.decide.budget import RoundCosts
from podstatus.alerts.evaluator.ports import EvaluationResult, RuleHolds, SubjectFacts
from podstatus.alerts.model import Rule
from tests.support.alert_rules import ENVIRONMENTS, pod_like


class FakeMeter:
    """A `Meter` with fixed costs for these rules."""

    def __init__(self, **seconds: float) -> None:
        self._costs = seconds
        self._current: Sequence[str] = ()
        self.groups = 0

    def start(self, rules: Sequence[str]) -> None:
        self._current = rules
        self.groups += len(rules) > 1

    def cpu_seconds(self) -> float:
        return sum(self._costs.get(name, 2e-6) for name in self._current)


def evaluation(meter: FakeMeter, count: int = 40) -> RuleEvaluation:
    rules = [Rule(name=f"R{number}", expression="!pod.ready") for number in range(count)]
    compiled = [compile_checked(rule, ENVIRONMENTS) for rule in rules]
    return RuleEvaluation(compiled, ENVIRONMENTS, meter=meter)


def ask(asked: RuleEvaluation, times: int = 50, *, ready: bool = True) -> EvaluationResult:
    return asked.evaluate([SubjectFacts("pod", pod_like(ready=ready))] * times)


def test_a_rule_that_uses_up_a_round_is_switched_off_alone() -> None:
    asked = evaluation(FakeMeter(R7=0.05))
    found = ask(asked, ready=False)
    assert list(found.disabled) == ["R7"]
    assert "50 ms" in found.disabled["R7"]
    others = {f"R{number}" for number in range(40)} - {"R7"}
    assert found.results[-1] == dict.fromkeys(
        sorted(others, key=lambda it: int(it[1:])), RuleHolds()
    )
    assert ask(asked, ready=False).disabled == {}


def test_one_in_a_group_is_found_though_no_rule_holds() -> None:
    meter = FakeMeter(R7=0.05)
    asked = evaluation(meter)
    assert list(ask(asked).disabled) == ["R7"]


def test_ordinary_rules_are_never_blamed() -> None:
    asked = evaluation(FakeMeter(), 1_000)
    assert ask(asked, ready=False).disabled == {}


def test_what_is_slow_once_is_not_blamed() -> None:
    costs = RoundCosts(50, 1_000)
    assert not costs.add(0.0009, "Fault")
    assert costs.add(2.0)
    assert costs.over_share() == {}


def test_the_cheapest_of_slow_rules_is_not_blamed() -> None:
    costs = RoundCosts(3, 81)
    # More than a share: it was the first in a new fork.
    costs.add(0.002, "Good")
    slow = [f"Slow{number}" for number in range(80)]
    assert any(costs.add(0.004, name) for name in slow)
    over = costs.over_share()
    assert "Good" not in over
    assert len(over) > 50


def test_a_round_goes_on_with_a_new_budget() -> None:
    costs = RoundCosts(1, 2)
    assert costs.add(1.0, "Bad")
    assert costs.over_share() == {"Bad": 1.0}
    assert not costs.add(0.1, "Good")


def test_rules_that_are_left_out_have_no_answers() -> None:
    asked = evaluation(FakeMeter(), 3)
    asked.disable(["R1"])
    (answers,) = ask(asked, 1, ready=False).results
    assert set(answers) == {"R0", "R2"}


def test_rules_that_are_taken_apart_answer_the_same() -> None:
    meter = FakeMeter()
    asked = evaluation(meter)
    before = ask(asked, 1, ready=False).results
    asked.isolate_rules()
    meter.groups = 0
    assert ask(asked, 1, ready=False).results == before
    assert meter.groups == 0


def test_annotations_are_bounded_together() -> None:
    texts = {f"a{number}": "{{ pod.message }}" for number in range(100)}
    rule = Rule(name="R", expression="!pod.ready", annotations=texts)
    asked = RuleEvaluation([compile_checked(rule, ENVIRONMENTS)], ENVIRONMENTS)
    (answers,) = asked.evaluate([SubjectFacts("pod", pod_like(message="x" * 5_000))]).results
    held = answers["R"]
    assert isinstance(held, RuleHolds)
    assert sum(map(len, held.annotations.values())) == 16 * 1024
    assert max(map(len, held.annotations.values())) == 2_000


def test_texts_of_a_round_are_bounded_together() -> None:
    texts = {f"a{number}": "{{ pod.message }}" for number in range(9)}
    rules = [
        Rule(name=f"R{number}", expression="!pod.ready", annotations=texts) for number in range(40)
    ]
    compiled = [compile_checked(rule, ENVIRONMENTS) for rule in rules]
    asked = RuleEvaluation(compiled, ENVIRONMENTS)
    found = asked.evaluate([SubjectFacts("pod", pod_like(message="x" * 5_000))] * 10)
    held = [it for answers in found.results for it in answers.values() if isinstance(it, RuleHolds)]
    assert len(held) == 400
    assert sum(len(text) for it in held for text in it.annotations.values()) == 4 * 2**20


def test_of_many_mistakes_in_a_rule_the_first_are_shown() -> None:
    rule = Rule(name="R", expression=" || ".join(f"pod.x{number} == 1" for number in range(300)))
    (check,) = ENVIRONMENTS.check([rule])
    assert len(check.errors) == 20
