"""Evaluation requests and results, and the protocols of evaluators.

    alert service ─ requests ─► RuleEvaluator ─ results ─► engine
    rule file ─► RuleChecker ─ diagnostics

EvaluatorError             rules cannot be evaluated now: retry later
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from podstatus.alerts.model import Rule, Scope, Subject
from podstatus.alerts.rules.fact_variables import Facts
from podstatus.alerts.rules.static_checks import CompileDiagnostic


class RuleFailed(msgspec.Struct, frozen=True, tag=True):
    """The expression has no value for these facts."""

    problem: str


class RuleHolds(msgspec.Struct, frozen=True, tag=True):
    """The rule holds; carries the annotations of its alert."""

    annotations: Mapping[str, str] = {}


RuleResult: TypeAlias = RuleHolds | RuleFailed
RuleResults: TypeAlias = Mapping[str, RuleResult]
"""Results for one subject, by rule name. A rule without a result does not hold."""


class EvaluationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a subject at one moment; all rules of its scope are evaluated."""

    subject: Subject
    facts: Facts
    now: int
    """When the facts were read, in monotonic nanoseconds."""
    warming_up: frozenset[str] = frozenset()
    """Facts that cannot show yet that a problem is over."""


class SubjectFacts(msgspec.Struct, frozen=True, array_like=True):
    """A request as it is sent to the evaluator process."""

    scope: Scope
    facts: Facts


class EvaluationResult(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The results of some requests."""

    results: tuple[RuleResults, ...]
    """One for each request, in the same order."""
    disabled: Mapping[str, str] = {}
    """Rules that were disabled for exceeding their budget, and why. They have no further results.
    """


class RuleCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The errors of a rule; one without errors can be evaluated."""

    errors: tuple[tuple[str, CompileDiagnostic], ...] = ()
    """Each with its field: `expr`, `annotations.summary`."""


class EvaluatorError(Exception):
    """Rules cannot be evaluated now; the message says why."""


class RuleEvaluator(Protocol):
    """Evaluates all rules of an agent without blocking the event loop."""

    async def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        """Evaluate all requests. Raises EvaluatorError: then nothing was evaluated."""


class BlockingEvaluator(Protocol):
    """A `RuleEvaluator` for callers without an event loop."""

    def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        """Evaluate all requests. Raises EvaluatorError."""


class RuleChecker(Protocol):
    """Compiles rules and runs them on trial inputs, within a budget."""

    def check(self, rules: Sequence[Rule]) -> Sequence[RuleCheck]:
        """Return the errors of each rule. Raises EvaluatorError."""
