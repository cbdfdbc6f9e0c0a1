"""Rules in groups have the same results as one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podstatus.alerts.cel.compile_rule import compile_checked
from podstatus.alerts.cel.evaluate import RuleEvaluation
from podstatus.alerts.evaluator.ports import RuleHolds, RuleResults, SubjectFacts
from podstatus.alerts.model import Rule
from tests.support.alert_rules import ENVIRONMENTS, pod_like

EXPRESSIONS = (
    "pod.restarts > 3 // with a remark",
    'pod.phase == "Pending"\n&& !pod.ready',
    '"n" in pod.labels && int(pod.labels.n) > 0',
    "pod.ready ? false : pod.static",
)


def evaluation(*expressions: str, isolated: bool = False) -> RuleEvaluation:
    rules = [Rule(name=f"R{number}", expression=it) for number, it in enumerate(expressions)]
    compiled = [compile_checked(rule, ENVIRONMENTS) for rule in rules]
    return RuleEvaluation(compiled, ENVIRONMENTS, isolated=isolated)


def results(rules: RuleEvaluation, **facts: Any) -> RuleResults:
    (found,) = rules.evaluate([SubjectFacts("pod", pod_like(**facts))]).results
    return found


GROUPED, ONE_BY_ONE = evaluation(*EXPRESSIONS), evaluation(*EXPRESSIONS, isolated=True)


@given(
    st.fixed_dictionaries({
        "restarts": st.sampled_from((0, 4)),
        "phase": st.sampled_from(("Pending", "Running")),
        "labels": st.sampled_from(({}, {"n": "0"}, {"n": "1"}, {"n": "?"})),
        "ready": st.booleans(),
        "static": st.booleans(),
    })
)  # fmt: skip
def test_together_they_say_the_same(known: dict[str, Any]) -> None:
    assert results(GROUPED, **known) == results(ONE_BY_ONE, **known)


def test_rules_that_do_not_fit_into_one_expression_are_asked_all_the_same() -> None:
    long = 'pod.name == "' + "x" * 3_000 + '"'
    rules = evaluation(*[f"{long} || pod.ready"] * 20)
    assert results(rules, ready=True) == {f"R{n}": RuleHolds() for n in range(20)}
