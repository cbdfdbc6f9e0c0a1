"""What rules are evaluated about, and what comes of it: values, and the ports of those who ask.

    watchman ─ questions ─► RuleEvaluator ─ answers ─► engine
    a file of rules ─► RuleChecker ─ flaws, with their places

EvaluatorError             rules cannot be evaluated now: again later
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from podstatus.alerts.model import Rule, Scope, Subject
from podstatus.alerts.rules.facts import Facts
from podstatus.alerts.rules.static_checks import CompileDiagnostic


class RuleFailed(msgspec.Struct, frozen=True, tag=True):
    """An expression has no value for these facts."""

    problem: str


class RuleHolds(msgspec.Struct, frozen=True, tag=True):
    """A rule holds; what its alert says if it fires."""

    annotations: Mapping[str, str] = {}


RuleResult: TypeAlias = RuleHolds | RuleFailed
RuleResults: TypeAlias = Mapping[str, RuleResult]
"""Of one subject, by the names of rules. A rule that is not among them does not hold."""


class EvaluationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a subject at one moment: all rules of its scope are asked about it."""

    subject: Subject
    facts: Facts
    now: int
    """When its facts were so, in nanoseconds since the Unix epoch."""
    warming_up: frozenset[str] = frozenset()
    """Facts that do not say yet that something is over."""


class SubjectFacts(msgspec.Struct, frozen=True, array_like=True):
    """A question as it travels to where rules are evaluated."""

    scope: Scope
    facts: Facts


class EvaluationResult(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What came of some questions."""

    results: tuple[RuleResults, ...]
    """One for each question, in their order."""
    disabled: Mapping[str, str] = {}
    """Rules that were over budget, and why. They have no answers from now on."""


class RuleCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Whether a rule can be evaluated."""

    errors: tuple[tuple[str, CompileDiagnostic], ...] = ()
    """What is wrong, each with its field: `expr`, `annotations.summary`."""
    problem: str = ""
    """Why it cannot be evaluated though nothing is wrong with it."""


class EvaluatorError(Exception):
    """Rules cannot be evaluated now; the message says why."""


class RuleEvaluator(Protocol):
    """Evaluates all rules of an agent without blocking its event loop."""

    async def evaluate(self, questions: Sequence[EvaluationRequest]) -> EvaluationResult:
        """The answers. Raises EvaluatorError: then nothing was evaluated."""


class BlockingEvaluator(Protocol):
    """The same for those who have no event loop."""

    def evaluate(self, questions: Sequence[EvaluationRequest]) -> EvaluationResult:
        """The answers. Raises EvaluatorError."""


class RuleChecker(Protocol):
    """Compiles rules and tries them on samples, within a budget."""

    def check(self, rules: Sequence[Rule]) -> Sequence[RuleCheck]:
        """What is wrong with each of them. Raises EvaluatorError."""
