"""Run a rule test: drive the engine through the steps and compare its alerts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import BlockingEvaluator, EvaluationRequest, RuleResults
from podstatus.alerts.model import Alert, Location
from podstatus.alerts.rule_tests.cases import (
    ExpectedAlert,
    RuleTest,
    RuleTestStep,
    baseline_facts,
    format_subject,
)
from podstatus.alerts.rules.load import LoadedRule

START_TIME = 1_700_000_000_000_000_000
"""Start time of scripted tests: at 0, times would count as unset."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A step whose alerts differ from the expected ones."""

    at: int
    location: Location
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    """One line for each alert that is unexpected or differs."""


class AlertChange(msgspec.Struct, frozen=True, kw_only=True):
    at: int
    alert: Alert


class RuleTestResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a rule test."""

    differences: tuple[Difference, ...]
    changes: tuple[AlertChange, ...]
    problems: tuple[str, ...] = ()
    """Rules that could not be evaluated, or failed."""


class EngineEvaluation:
    """An engine with the evaluator of its rules."""

    def __init__(self, engine: Engine, evaluator: BlockingEvaluator) -> None:
        self.engine = engine
        self._evaluator = evaluator

    def evaluate(
        self,
        requests: Sequence[EvaluationRequest],
        apply: Callable[[EvaluationRequest, RuleResults], list[Alert]],
    ) -> list[Alert]:
        """Evaluate and apply; return the alerts that changed. Raises EvaluatorError."""
        evaluated = self._evaluator.evaluate(requests)
        for rule, problem in evaluated.disabled.items():
            self.engine.disable_rule(rule, problem)
        pairs = zip(requests, evaluated.results, strict=True)
        return [alert for request, results in pairs for alert in apply(request, results)]

    def apply(self, request: EvaluationRequest, results: RuleResults) -> list[Alert]:
        """Apply results to the engine; return the alerts that changed."""
        return self.engine.apply(request.subject, results, request.now)


class RuleTestDriver(Protocol):
    """Drives the engine. All times are the engine's."""

    start_time: int

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """Yield the alerts that change until `to`, timers included."""

    def step(self, step: RuleTestStep, now: int) -> list[Alert]:
        """Apply a step; return the alerts that it changes."""


class ScriptedDriver:
    """A `RuleTestDriver` that applies the changes of the steps."""

    start_time = START_TIME

    def __init__(self, evaluation: EngineEvaluation) -> None:
        self._evaluation = evaluation
        self._engine = evaluation.engine
        self._facts: dict[str, dict[str, Any]] = {}

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """Yield the alerts whose timers expire until `to`."""
        while (due := self._engine.next_due()) is not None and due <= to:
            yield due, self._engine.advance(due)

    def step(self, step: RuleTestStep, now: int) -> list[Alert]:
        """Apply the facts of a step; a new subject starts healthy."""
        changed: list[Alert] = []
        for subject, facts in step.changes:
            key = format_subject(subject.scope, f"{subject.namespace}/{subject.name}")
            if facts is None:
                self._facts.pop(key, None)
                changed += self._engine.subject_removed(subject, now)
                continue
            current = self._facts.get(key) or baseline_facts(subject)
            self._facts[key] = {**current, **facts}
            request = EvaluationRequest(subject=subject, facts=self._facts[key], now=now)
            changed += self._evaluation.evaluate([request], self._evaluation.apply)
        return changed


def run_rule_test(
    test: RuleTest,
    rules: Sequence[LoadedRule],
    evaluator: BlockingEvaluator,
    make_driver: Callable[[EngineEvaluation], RuleTestDriver] = ScriptedDriver,
) -> RuleTestResult:
    """Run a test from start to end. The evaluator must have loaded these rules.

    Raises EvaluatorError.
    """
    tested = [it for it in rules if not test.only or it.rule.name in test.only]
    engine = Engine(tested)
    driver = make_driver(EngineEvaluation(engine, evaluator))
    changes: list[AlertChange] = []
    differences: list[Difference] = []
    seen = 0
    for step in test.steps:
        now = driver.start_time + step.at
        for at, changed in driver.advance(now):
            changes += (AlertChange(at=at - driver.start_time, alert=alert) for alert in changed)
        for alert in driver.step(step, now):
            changes.append(AlertChange(at=step.at, alert=alert))
        if step.expect is not None:
            over = [it.alert for it in changes[seen:] if it.alert.state == "resolved"]
            alerts = [*engine.alerts().values(), *(it for it in over if it.fired)]
            seen = len(changes)
            differences += _compare(step, step.expect, alerts)
    problems = tuple(f"{it.name}: {it.problem}" for it in engine.rules() if it.problem)
    return RuleTestResult(differences=tuple(differences), changes=tuple(changes), problems=problems)


def _compare(
    step: RuleTestStep, expect: Sequence[ExpectedAlert], alerts: Sequence[Alert]
) -> list[Difference]:
    """Match expected and actual alerts; return what is left of both."""
    unmatched = list(alerts)
    missing: list[ExpectedAlert] = []
    for expected in expect:
        match = next((alert for alert in unmatched if _matches(alert, expected)), None)
        if match is None:
            missing.append(expected)
        else:
            unmatched.remove(match)
    if not missing and not unmatched:
        return []
    actual = tuple(_alert_line(alert, missing) for alert in unmatched) or ("nothing",)
    expected_lines = tuple(map(_expected_line, missing)) or ("nothing",)
    return [Difference(at=step.at, location=step.location, expected=expected_lines, actual=actual)]


def _matches(alert: Alert, expected: ExpectedAlert) -> bool:
    return (
        (alert.rule, alert.subject.scope, alert.subject.full_name, alert.state)
        == (expected.rule, expected.scope, expected.subject, expected.state)
        and expected.labels.items() <= alert.labels.items()
        and expected.annotations.items() <= alert.annotations.items()
    )


def _expected_line(it: ExpectedAlert) -> str:
    return _format_line(
        it.rule, it.state, format_subject(it.scope, it.subject), it.labels, it.annotations
    )


def _alert_line(alert: Alert, missing: Sequence[ExpectedAlert]) -> str:
    """Format an alert with the labels and annotations that a missing expectation compares."""
    subject = alert.subject
    near = [it for it in missing if (it.rule, it.subject) == (alert.rule, subject.full_name)]
    labels = {k: alert.labels[k] for it in near for k in it.labels if k in alert.labels}
    texts = {
        k: alert.annotations[k] for it in near for k in it.annotations if k in alert.annotations
    }
    about = format_subject(subject.scope, subject.full_name)
    return _format_line(alert.rule, alert.state, about, labels, texts)


def _format_line(
    rule: str, state: str, subject: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> str:
    texts = [f"{name}={text!r}" for name, text in (*labels.items(), *annotations.items())]
    return " ".join([rule, subject, state, *texts])
