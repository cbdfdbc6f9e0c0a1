"""Play a rehearsal: the engine is told what happens, and is to say what is expected."""

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
    subject_name,
)
from podstatus.alerts.rules.load import LoadedRule

START_TIME = 1_700_000_000_000_000_000
"""When steps that tell facts are played: at 0 nothing can have happened."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A step at which others than the expected alerts are there."""

    at: int
    location: Location
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    """A line for each alert that is not as it should be, or has no counterpart."""


class AlertChange(msgspec.Struct, frozen=True, kw_only=True):
    """An alert became another."""

    at: int
    alert: Alert


class RuleTestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a rehearsal."""

    differences: tuple[Difference, ...]
    changes: tuple[AlertChange, ...]
    problems: tuple[str, ...] = ()
    """Rules that could not be asked, or failed."""


class EngineEvaluation:
    """An engine, and where its rules are evaluated."""

    def __init__(self, engine: Engine, evaluator: BlockingEvaluator) -> None:
        self.engine = engine
        self._evaluator = evaluator

    def evaluate(
        self,
        questions: Sequence[EvaluationRequest],
        apply: Callable[[EvaluationRequest, RuleResults], list[Alert]],
    ) -> list[Alert]:
        """The alerts that changed. Raises EvaluatorError."""
        evaluated = self._evaluator.evaluate(questions)
        for rule, problem in evaluated.disabled.items():
            self.engine.disable_rule(rule, problem)
        pairs = zip(questions, evaluated.results, strict=True)
        return [alert for question, answers in pairs for alert in apply(question, answers)]

    def apply(self, question: EvaluationRequest, answers: RuleResults) -> list[Alert]:
        """The alerts that changed by these answers."""
        return self.engine.apply(question.subject, answers, question.now)


class RuleTestDriver(Protocol):
    """What makes things happen. All times are the engine's."""

    start_time: int

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """What changes until then, all that waits for it included."""

    def step(self, step: RuleTestStep, now: int) -> list[Alert]:
        """What the step itself changes."""


class ScriptedDriver:
    """What happens is what the steps say."""

    start_time = START_TIME

    def __init__(self, evaluation: EngineEvaluation) -> None:
        self._evaluation = evaluation
        self._engine = evaluation.engine
        self._facts: dict[str, dict[str, Any]] = {}

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """What waits for its time."""
        while (due := self._engine.next_due()) is not None and due <= to:
            yield due, self._engine.advance(due)

    def step(self, step: RuleTestStep, now: int) -> list[Alert]:
        """Facts become others; one that was not there before is as it should be but for them."""
        changed: list[Alert] = []
        for subject, facts in step.changes:
            key = format_subject(subject.scope, f"{subject.namespace}/{subject.name}")
            if facts is None:
                self._facts.pop(key, None)
                changed += self._engine.subject_removed(subject, now)
                continue
            known = self._facts.get(key) or baseline_facts(subject)
            self._facts[key] = {**known, **facts}
            question = EvaluationRequest(subject=subject, facts=self._facts[key], now=now)
            changed += self._evaluation.evaluate([question], self._evaluation.apply)
        return changed


def run_rule_test(
    test: RuleTest,
    rules: Sequence[LoadedRule],
    evaluator: BlockingEvaluator,
    make_driver: Callable[[EngineEvaluation], RuleTestDriver] = ScriptedDriver,
) -> RuleTestResult:
    """Play it from its beginning to its end. The evaluator has these rules.

    Raises EvaluatorError.
    """
    asked = [it for it in rules if not test.only or it.rule.name in test.only]
    engine = Engine(asked)
    play = make_driver(EngineEvaluation(engine, evaluator))
    happened: list[AlertChange] = []
    differences: list[Difference] = []
    seen = 0
    for step in test.steps:
        now = play.start_time + step.at
        for at, changed in play.advance(now):
            happened += (AlertChange(at=at - play.start_time, alert=alert) for alert in changed)
        for alert in play.step(step, now):
            happened.append(AlertChange(at=step.at, alert=alert))
        if step.expect is not None:
            over = [it.alert for it in happened[seen:] if it.alert.state == "resolved"]
            there = [*engine.alerts().values(), *(it for it in over if it.fired)]
            seen = len(happened)
            differences += _compare(step, step.expect, there)
    problems = tuple(f"{it.name}: {it.problem}" for it in engine.rules() if it.problem)
    return RuleTestResult(
        differences=tuple(differences), changes=tuple(happened), problems=problems
    )


def _compare(
    step: RuleTestStep, expect: Sequence[ExpectedAlert], there: Sequence[Alert]
) -> list[Difference]:
    """What is expected and not there, and the other way round."""
    left = list(there)
    missing: list[ExpectedAlert] = []
    for expected in expect:
        found = next((alert for alert in left if _matches(alert, expected)), None)
        if found is None:
            missing.append(expected)
        else:
            left.remove(found)
    if not missing and not left:
        return []
    got = tuple(_alert_line(alert, missing) for alert in left) or ("nothing",)
    expected_lines = tuple(map(_expected_line, missing)) or ("nothing",)
    return [Difference(at=step.at, location=step.location, expected=expected_lines, actual=got)]


def _matches(alert: Alert, expected: ExpectedAlert) -> bool:
    return (
        (alert.rule, alert.subject.scope, subject_name(alert), alert.state)
        == (expected.rule, expected.scope, expected.subject, expected.state)
        and expected.labels.items() <= alert.labels.items()
        and expected.annotations.items() <= alert.annotations.items()
    )


def _expected_line(it: ExpectedAlert) -> str:
    return _format_line(
        it.rule, it.state, format_subject(it.scope, it.subject), it.labels, it.annotations
    )


def _alert_line(alert: Alert, missing: Sequence[ExpectedAlert]) -> str:
    """With those of its texts that one is asked for which is missing."""
    subject = alert.subject
    near = [it for it in missing if (it.rule, it.subject) == (alert.rule, subject_name(alert))]
    labels = {k: alert.labels[k] for it in near for k in it.labels if k in alert.labels}
    texts = {
        k: alert.annotations[k] for it in near for k in it.annotations if k in alert.annotations
    }
    return _format_line(
        alert.rule, alert.state, format_subject(subject.scope, subject_name(alert)), labels, texts
    )


def _format_line(
    rule: str, state: str, subject: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> str:
    texts = [f"{name}={text!r}" for name, text in (*labels.items(), *annotations.items())]
    return " ".join([rule, subject, state, *texts])
