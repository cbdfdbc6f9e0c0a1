"""Evaluate compiled rules for some subjects, and meter the CPU time of each.

For most pods no rule holds, and calling CEL costs more than evaluating: twelve rules in one
expression take 5 µs, one after the other 25. So groups of rules are evaluated as one disjunction
first; only if that is not false is each rule evaluated by itself. A slow group is split into its
rules; a rule that exceeds its budget is disabled. For one thread.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from podstatus.alerts.cel.compile_expression import Activation, Environment, Expression
from podstatus.alerts.cel.compile_rule import CompiledRule, Environments
from podstatus.alerts.evaluator.decide.budget import (
    SLOW_GROUP_SECONDS,
    SLOW_GROUP_TIMES,
    TOO_SLOW_GROUP_SECONDS,
    RoundCosts,
)
from podstatus.alerts.evaluator.ports import (
    EvaluationResult,
    RuleFailed,
    RuleHolds,
    RuleResult,
    RuleResults,
    SubjectFacts,
)
from podstatus.alerts.model import Scope
from podstatus.alerts.rules.fact_variables import FACTS
from podstatus.alerts.rules.static_checks import CompileError

OUT_OF_MEMORY = "std::bad_alloc"
"""The error of an expression that needs more memory than the process may use."""
_MAX_ANNOTATIONS = 16 * 1024
"""Characters in all annotations of an alert; one annotation has at most 2,000."""
_MAX_ROUND_TEXT = 4 * 2**20
"""Characters in all annotations and errors of a round, so that its results fit into a frame."""

_MAX_GROUP_SIZE = 16
"""Rules in a group. If one holds or fails, every rule of its group is evaluated."""


class Meter(Protocol):
    """Measures one evaluation at a time."""

    def start(self, rules: Sequence[str]) -> None:
        """One of these rules, or all of them as a group, is evaluated from now on."""

    def cpu_seconds(self) -> float:
        """Return the CPU seconds since `start`."""


class NoMeter:
    """A `Meter` that measures nothing."""

    def start(self, rules: Sequence[str]) -> None:
        """Do nothing: evaluations are not measured."""

    def cpu_seconds(self) -> float:
        """Return 0: evaluations are not measured."""
        return 0.0


_NO_METER = NoMeter()


class RuleGroup:
    def __init__(self, rules: Sequence[CompiledRule], environment: Environment) -> None:
        self.rules = rules
        self.names = tuple(compiled.rule.name for compiled in rules)
        self._disjunction = _compile_disjunction(rules, environment)

    def none_holds(self, facts: Activation) -> bool:
        """True only if no rule of the group holds or fails."""
        return self._disjunction is not None and self._disjunction.holds(facts) is False


class RuleEvaluation:
    """Evaluates all rules of an agent."""

    def __init__(
        self,
        rules: Sequence[CompiledRule],
        environments: Environments,
        *,
        isolated: bool = False,
        meter: Meter = _NO_METER,
    ) -> None:
        """`isolated`: evaluate each rule by itself, without groups."""
        self._environments = environments
        self._meter = meter
        self._count = len(rules)
        self._disabled: dict[str, str] = {}
        self._text_budget = _MAX_ROUND_TEXT
        self._slow_counts: Counter[RuleGroup] = Counter()
        self._groups: dict[Scope, list[RuleGroup]] = {}
        self._isolated: dict[Scope, list[CompiledRule]] = {}
        for scope in FACTS:
            own = [it for it in rules if it.rule.scope == scope]
            grouped, self._isolated[scope] = ([], own) if isolated else (own, [])
            self._groups[scope] = _group_rules(grouped, environments[scope], meter.start)

    def disable(self, rules: Iterable[str]) -> None:
        """Stop evaluating these rules: they exceeded their budget."""
        self._disabled |= dict.fromkeys(rules, "")

    def isolate_rules(self) -> None:
        """Evaluate each rule by itself from now on."""
        for scope, groups in self._groups.items():
            self._isolated[scope] += (compiled for group in groups for compiled in group.rules)
            groups.clear()

    def evaluate(self, subjects: Sequence[SubjectFacts]) -> EvaluationResult:
        """Return the results for each subject, and the rules that were disabled for their cost."""
        costs = RoundCosts(len(subjects), self._count)
        self._text_budget = _MAX_ROUND_TEXT
        before = set(self._disabled)
        results = tuple(self._evaluate_subject(about, costs) for about in subjects)
        new = {name: why for name, why in self._disabled.items() if name not in before}
        return EvaluationResult(results=results, disabled=new)

    def _evaluate_subject(self, about: SubjectFacts, costs: RoundCosts) -> RuleResults:
        activation = self._environments[about.scope].activation(about.facts)
        results: dict[str, RuleResult] = {}
        for group in list(self._groups[about.scope]):
            if not self._none_holds(group, about.scope, activation, costs):
                for compiled in group.rules:
                    self._evaluate_rule(compiled, activation, costs, results)
        for compiled in self._isolated[about.scope]:
            self._evaluate_rule(compiled, activation, costs, results)
        return results

    def _none_holds(
        self, group: RuleGroup, scope: Scope, activation: Activation, costs: RoundCosts
    ) -> bool:
        self._meter.start(group.names)
        holds_none = group.none_holds(activation)
        seconds = self._meter.cpu_seconds()
        costs.add(seconds)
        if seconds > SLOW_GROUP_SECONDS:
            self._slow_counts[group] += 1
            if seconds > TOO_SLOW_GROUP_SECONDS or self._slow_counts[group] == SLOW_GROUP_TIMES:
                self._groups[scope].remove(group)
                self._isolated[scope] += group.rules
        return holds_none

    def _evaluate_rule(
        self,
        compiled: CompiledRule,
        activation: Activation,
        costs: RoundCosts,
        results: dict[str, RuleResult],
    ) -> None:
        name = compiled.rule.name
        if name in self._disabled:
            return
        self._meter.start((name,))
        held = compiled.condition.holds(activation)
        result: RuleResult | None = None
        if isinstance(held, RuleFailed):
            result = RuleFailed(self._truncate(held.problem))
        elif held:
            result = RuleHolds(self._annotations(compiled, activation))
        if costs.add(self._meter.cpu_seconds(), name):
            for over, mean in costs.over_share().items():
                self._disabled[over] = (
                    f"it takes {mean * 1000:.3g} ms of CPU per pod or node, and all rules "
                    f"together exceeded {costs.budget:.3g} s"
                )
        # Not for annotations: the message of a container may contain the same text.
        if result == RuleFailed(OUT_OF_MEMORY):
            self._disabled[name] = "it needs too much memory"
        elif result is not None:
            results[name] = result

    def _annotations(self, compiled: CompiledRule, activation: Activation) -> dict[str, str]:
        left = _MAX_ANNOTATIONS
        filled: dict[str, str] = {}
        for name, template in compiled.annotations.items():
            filled[name] = self._truncate(template.render(activation)[:left])
            left -= len(filled[name])
        return filled

    def _truncate(self, text: str) -> str:
        text = text[: self._text_budget]
        self._text_budget -= len(text)
        return text


def _group_rules(
    rules: Sequence[CompiledRule],
    environment: Environment,
    on_start: Callable[[Sequence[str]], None],
) -> list[RuleGroup]:
    """`on_start` is called with the rule names of a group before it is compiled."""
    groups = []
    for start in range(0, len(rules), _MAX_GROUP_SIZE):
        members = rules[start : start + _MAX_GROUP_SIZE]
        on_start([compiled.rule.name for compiled in members])
        groups.append(RuleGroup(members, environment))
    return groups


def _compile_disjunction(
    rules: Sequence[CompiledRule], environment: Environment
) -> Expression | None:
    """Compile `a || b || …`; None if that is too long or too deep for one expression.

    Each rule has lines of its own, since it may end with a comment. In CEL, true hides an error in
    another operand, but the result is false only if every operand is false.
    """
    text = " || ".join(f"(\n{compiled.rule.expression}\n)" for compiled in rules)
    try:
        return environment.compile(text)
    except CompileError:  # too long, or too deep
        return None
