"""A group has the same results as its rules one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podstatus.alerts.cel.compile_rule import compile_rule
from podstatus.alerts.cel.rule_groups import RuleGroup, group_rules
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.model import Rule
from tests.support.alert_rules import ENVIRONMENTS, pod_like

EXPRESSIONS = (
    "pod.restarts > 3 // with a remark",
    'pod.phase == "Pending"\n&& !pod.ready',
    '"n" in pod.labels && int(pod.labels.n) > 0',
    "pod.ready ? false : pod.static",
)
POD = ENVIRONMENTS.local("pod")
RULES = [
    compile_rule(Rule(name=f"R{number}", expression=text), ENVIRONMENTS)
    for number, text in enumerate(EXPRESSIONS)
]
GROUP = RuleGroup(RULES, POD)


def asked_one_by_one(facts: Any) -> dict[str, bool | RuleFailed]:
    found = {r.rule.name: r.condition.holds(facts) for r in RULES if r.condition is not None}
    return {name: it for name, it in found.items() if it is not False}


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
    facts = POD.activation(pod_like(**known))
    results = {name: it for name, it in GROUP.evaluate(facts) if it is not False}
    assert results == asked_one_by_one(facts)


def test_where_none_holds_none_is_asked_by_itself() -> None:
    assert GROUP.evaluate(POD.activation(pod_like(ready=True))) == []


def test_rules_that_do_not_fit_into_one_expression_are_asked_all_the_same() -> None:
    long = 'pod.name == "' + "x" * 3_000 + '"'
    rules = [
        compile_rule(Rule(name=f"R{n}", expression=f"{long} || pod.ready"), ENVIRONMENTS)
        for n in range(20)
    ]
    groups = group_rules(rules, POD, on_start=lambda _: None)
    answers = [it for group in groups for it in group.evaluate(_ready())]
    assert answers == [(f"R{n}", True) for n in range(20)]


def _ready() -> Any:
    return POD.activation(pod_like(ready=True))
