"""Play a rehearsal: the engine is told what happens, and is to say what is expected."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import Answers, BlockingEvaluator, Question
from podstatus.alerts.model import Alert, Place
from podstatus.alerts.rule_tests.cases import (
    Expected,
    Rehearsal,
    Step,
    name_of,
    subject_text,
    usual_facts,
)
from podstatus.alerts.rules.load import LoadedRule

BEGIN = 1_700_000_000_000_000_000
"""When steps that tell facts are played: at 0 nothing can have happened."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A step at which others than the expected alerts are there."""

    at: int
    place: Place
    expected: tuple[str, ...]
    got: tuple[str, ...]
    """A line for each alert that is not as it should be, or has no counterpart."""


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An alert became another."""

    at: int
    alert: Alert


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a rehearsal."""

    differences: tuple[Difference, ...]
    happened: tuple[Happened, ...]
    problems: tuple[str, ...] = ()
    """Rules that could not be asked, or failed."""


class Asking:
    """An engine, and where its rules are evaluated."""

    def __init__(self, engine: Engine, evaluator: BlockingEvaluator) -> None:
        self.engine = engine
        self._evaluator = evaluator

    def ask(
        self, questions: Sequence[Question], apply: Callable[[Question, Answers], list[Alert]]
    ) -> list[Alert]:
        """The alerts that changed. Raises EvaluatorError."""
        evaluated = self._evaluator.evaluate(questions)
        for rule, problem in evaluated.switched_off.items():
            self.engine.switch_off(rule, problem)
        pairs = zip(questions, evaluated.answers, strict=True)
        return [alert for question, answers in pairs for alert in apply(question, answers)]

    def apply(self, question: Question, answers: Answers) -> list[Alert]:
        """The alerts that changed by these answers."""
        return self.engine.apply(question.subject, answers, question.now)


class Play(Protocol):
    """What makes things happen. All times are the engine's."""

    begin: int

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """What changes until then, all that waits for it included."""

    def step(self, step: Step, now: int) -> list[Alert]:
        """What the step itself changes."""


class Told:
    """What happens is what the steps say."""

    begin = BEGIN

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._engine = asking.engine
        self._facts: dict[str, dict[str, Any]] = {}

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """What waits for its time."""
        while (due := self._engine.due()) is not None and due <= to:
            yield due, self._engine.run_out(due)

    def step(self, step: Step, now: int) -> list[Alert]:
        """Facts become others; one that was not there before is as it should be but for them."""
        changed: list[Alert] = []
        for subject, facts in step.changes:
            key = subject_text(subject.scope, f"{subject.namespace}/{subject.name}")
            if facts is None:
                self._facts.pop(key, None)
                changed += self._engine.gone(subject, now)
                continue
            known = self._facts.get(key) or usual_facts(subject)
            self._facts[key] = {**known, **facts}
            question = Question(subject=subject, facts=self._facts[key], now=now)
            changed += self._asking.ask([question], self._asking.apply)
        return changed


def rehearse(
    rehearsal: Rehearsal,
    rules: Sequence[LoadedRule],
    evaluator: BlockingEvaluator,
    make: Callable[[Asking], Play] = Told,
) -> Outcome:
    """Play it from its beginning to its end. The evaluator has these rules.

    Raises EvaluatorError.
    """
    asked = [it for it in rules if not rehearsal.only or it.rule.name in rehearsal.only]
    engine = Engine(asked)
    play = make(Asking(engine, evaluator))
    happened: list[Happened] = []
    differences: list[Difference] = []
    seen = 0
    for step in rehearsal.steps:
        now = play.begin + step.at
        for at, changed in play.advance(now):
            happened += (Happened(at=at - play.begin, alert=alert) for alert in changed)
        for alert in play.step(step, now):
            happened.append(Happened(at=step.at, alert=alert))
        if step.expect is not None:
            over = [it.alert for it in happened[seen:] if it.alert.state == "resolved"]
            there = [*engine.alerts().values(), *(it for it in over if it.fired)]
            seen = len(happened)
            differences += _compare(step, step.expect, there)
    problems = tuple(f"{it.name}: {it.problem}" for it in engine.rules() if it.problem)
    return Outcome(differences=tuple(differences), happened=tuple(happened), problems=problems)


def _compare(step: Step, expect: Sequence[Expected], there: Sequence[Alert]) -> list[Difference]:
    """What is expected and not there, and the other way round."""
    left = list(there)
    missing: list[Expected] = []
    for expected in expect:
        found = next((alert for alert in left if _is(alert, expected)), None)
        if found is None:
            missing.append(expected)
        else:
            left.remove(found)
    if not missing and not left:
        return []
    got = tuple(_line(alert, missing) for alert in left) or ("nothing",)
    expected_lines = tuple(map(_expected_line, missing)) or ("nothing",)
    return [Difference(at=step.at, place=step.place, expected=expected_lines, got=got)]


def _is(alert: Alert, expected: Expected) -> bool:
    return (
        (alert.rule, alert.subject.scope, name_of(alert), alert.state)
        == (expected.rule, expected.scope, expected.subject, expected.state)
        and expected.labels.items() <= alert.labels.items()
        and expected.annotations.items() <= alert.annotations.items()
    )


def _expected_line(it: Expected) -> str:
    return _told(it.rule, it.state, subject_text(it.scope, it.subject), it.labels, it.annotations)


def _line(alert: Alert, missing: Sequence[Expected]) -> str:
    """With those of its texts that one is asked for which is missing."""
    subject = alert.subject
    near = [it for it in missing if (it.rule, it.subject) == (alert.rule, name_of(alert))]
    labels = {k: alert.labels[k] for it in near for k in it.labels if k in alert.labels}
    texts = {
        k: alert.annotations[k] for it in near for k in it.annotations if k in alert.annotations
    }
    return _told(
        alert.rule, alert.state, subject_text(subject.scope, name_of(alert)), labels, texts
    )


def _told(
    rule: str, state: str, subject: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> str:
    texts = [f"{name}={text!r}" for name, text in (*labels.items(), *annotations.items())]
    return " ".join([rule, subject, state, *texts])
