"""The default rules: valid, tested, well written, and replaced or disabled by rule files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from podstatus.agent.compose.alert_rules import AlertRules, AlertRulesError, load_alert_rules
from podstatus.alerts.defaults import default_rules
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.model import Rule
from podstatus.alerts.rule_tests.cases import RuleTest, read_rule_tests
from podstatus.alerts.rule_tests.run import run_rule_test
from tests.support.alert_rules import ENVIRONMENTS, BlockingLocalEvaluator, checked

DEFAULTS = default_rules(ENVIRONMENTS)
NAMES = [loaded.rule.name for loaded in DEFAULTS.rules]
EVALUATOR = BlockingLocalEvaluator(DEFAULTS.rules)
CHECKER = BudgetedEvaluator()
REHEARSALS, MISTAKES = read_rule_tests(
    (Path(__file__).parent / "default_rules_test.yaml").read_text()
)


def test_nothing_is_wrong_with_them() -> None:
    assert (DEFAULTS.errors, DEFAULTS.warnings) == ((), ())
    assert NAMES


@pytest.mark.parametrize("rule_test", REHEARSALS.tests, ids=lambda it: it.name)
def test_each_fires_and_resolves_as_rehearsed(rule_test: RuleTest) -> None:
    outcome = run_rule_test(rule_test, DEFAULTS.rules, EVALUATOR)
    assert (outcome.differences, outcome.problems) == ((), ())


def test_each_is_rehearsed_in_both_directions() -> None:
    assert MISTAKES == ()
    steps = [step for it in REHEARSALS.tests for step in it.steps]
    said = {(it.rule, it.state) for step in steps for it in step.expect or ()}
    assert {rule for rule, state in said if state == "firing"} == set(NAMES)
    assert {rule for rule, state in said if state == "resolved"} == set(NAMES)


def test_each_says_what_it_means_and_what_to_do() -> None:
    outcomes = [run_rule_test(it, DEFAULTS.rules, EVALUATOR) for it in REHEARSALS.tests]
    alerts = [it.alert for outcome in outcomes for it in outcome.changes]
    fired = {alert.rule: alert.annotations for alert in alerts if alert.state == "firing"}
    assert set(fired) == set(NAMES)
    for rule, texts in fired.items():
        assert not [it for it in texts.values() if re.search(r"[<>{}]|\s\s|\n", it)], rule
        assert 20 < len(texts["summary"]) < 100, rule
        assert 150 < len(texts["description"]) < 700, rule


_NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.%])")
_DECIMAL = re.compile(r"(?<![\w.])(0\.\d+)")


def spoilt(rule: Rule) -> Iterator[Rule]:
    """The rule with one of its numbers or durations slightly changed."""
    text = rule.expression
    for found in _NUMBER.finditer(text):
        for number in (int(found[1]) - 1, int(found[1]) + 1):
            yield replace(
                rule, expression=text[: found.start()] + str(number) + text[found.end() :]
            )
    for found in _DECIMAL.finditer(text):
        for part in (float(found[1]) - 0.05, float(found[1]) + 0.05):
            yield replace(rule, expression=text[: found.start()] + str(part) + text[found.end() :])
    for seconds in (-1.0, 1.0):
        if rule.for_seconds:
            yield replace(rule, for_seconds=rule.for_seconds + seconds)
        if rule.keep_firing_for_seconds:
            longer = rule.keep_firing_for_seconds + seconds
            yield replace(rule, keep_firing_for_seconds=longer)


def rules_of(rule_test: RuleTest) -> set[str]:
    return {it.rule for step in rule_test.steps for it in step.expect or ()}


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_that_is_a_little_different_is_noticed(name: str) -> None:
    rules = {it.rule.name: it for it in DEFAULTS.rules}
    about = [it for it in REHEARSALS.tests if name in rules_of(it)]
    for other in (replace(rules[name].rule, expression="false"), *spoilt(rules[name].rule)):
        changed = [*(rules | {name: checked(other)}).values()]
        evaluator = BlockingLocalEvaluator(changed)
        outcomes = [run_rule_test(it, changed, evaluator) for it in about]
        assert any(it.differences for it in outcomes), other


def load(tmp_path: Path, *texts: str) -> AlertRules:
    paths = [tmp_path / f"rules-{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return load_alert_rules(paths, CHECKER)


@pytest.fixture(scope="module", autouse=True)
def _checker() -> Iterator[None]:
    with CHECKER:
        yield


def test_without_files_they_are_asked(tmp_path: Path) -> None:
    assert [it.rule.name for it in load(tmp_path).rules] == NAMES


def test_rules_of_files_are_asked_beside_them(tmp_path: Path) -> None:
    loaded = load(tmp_path, "rules: [{name: Mine, expr: pod.ready}]")
    assert [it.rule.name for it in loaded.rules] == [*NAMES, "Mine"]


def test_a_rule_of_the_same_name_replaces_one(tmp_path: Path) -> None:
    loaded = load(tmp_path, "rules: [{name: PodNotReady, expr: '!pod.ready', for: 1m}]")
    [found] = [it.rule for it in loaded.rules if it.rule.name == "PodNotReady"]
    assert (found.expression, found.for_seconds) == ("!pod.ready", 60.0)
    assert len(loaded.rules) == len(NAMES)


def test_one_can_be_switched_off(tmp_path: Path) -> None:
    loaded = load(tmp_path, "disable: [NodePressure, PodNotReady]", "rules: []")
    names = [it.rule.name for it in loaded.rules]
    assert names == [name for name in NAMES if name not in ("NodePressure", "PodNotReady")]


def test_to_switch_off_what_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(AlertRulesError) as caught:
        load(tmp_path, "disable:\n- NodePressur\n- {a: b}\nrules: []")
    assert str(caught.value).split("rules-0.yaml")[1:] == [
        f":3:3: disable must be a string, not a mapping\n{tmp_path}/",
        ":2:3: disable: there is no default rule NodePressur; did you mean NodePressure?",
    ]


def test_default_rules_may_change_nothing(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert [name for name in NAMES if loaded.rule_set(name).allow_actions] == []
