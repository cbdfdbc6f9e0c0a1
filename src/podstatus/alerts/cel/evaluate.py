"""Evaluate compiled rules about some subjects, and meter what each of them takes.

Rules are asked in groups first (rule_groups.py). A group that takes long is taken apart, a rule
that is over budget is left out from then on. For one thread.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from podstatus.alerts.cel.compile import CompiledRule, Environments
from podstatus.alerts.cel.expression import Activation
from podstatus.alerts.cel.rule_groups import RuleGroup, group_rules
from podstatus.alerts.evaluator.budget import (
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
from podstatus.alerts.rules.facts import FACTS

OUT_OF_MEMORY = "std::bad_alloc"
"""What an expression fails with if it wants more memory than there is."""
_MAX_ANNOTATIONS = 16 * 1024
"""Characters of all annotations of an alert; one has 2,000 at most."""
_MAX_ROUND_TEXT = 4 * 2**20
"""Characters of all annotations and problems in a round, so that its answers fit into a frame."""


class Meter(Protocol):
    """Watches one evaluation at a time."""

    def start(self, rules: Sequence[str]) -> None:
        """One of these rules is evaluated now, or all of them together."""

    def cpu_seconds(self) -> float:
        """CPU seconds since `begin`."""


class NoMeter:
    """Costs nothing, and measures nothing."""

    def start(self, rules: Sequence[str]) -> None:
        """It is not watched."""

    def cpu_seconds(self) -> float:
        """None."""
        return 0.0


_NO_METER = NoMeter()


class RuleEvaluation:
    """All rules of an agent."""

    def __init__(
        self,
        rules: Sequence[CompiledRule],
        environments: Environments,
        *,
        isolated: bool = False,
        meter: Meter = _NO_METER,
    ) -> None:
        """`isolated`: each rule is asked by itself."""
        self._environments = environments
        self._meter = meter
        self._count = len(rules)
        self._disabled: dict[str, str] = {}
        self._text_budget = _MAX_ROUND_TEXT
        self._slow_counts: Counter[RuleGroup] = Counter()
        self._groups: dict[Scope, list[RuleGroup]] = {}
        self._isolated: dict[Scope, list[CompiledRule]] = {}
        for scope in FACTS:
            here = [it for it in rules if it.rule.scope == scope and it.condition is not None]
            together, self._isolated[scope] = ([], here) if isolated else (here, [])
            self._groups[scope] = group_rules(
                together, environments.local(scope), on_start=meter.start
            )

    def disable(self, rules: Iterable[str]) -> None:
        """These are over budget."""
        self._disabled |= dict.fromkeys(rules, "")

    def isolate_rules(self) -> None:
        """Ask each rule by itself from now on."""
        for scope, groups in self._groups.items():
            self._isolated[scope] += (compiled for group in groups for compiled in group.rules)
            groups.clear()

    def evaluate(self, subjects: Sequence[SubjectFacts]) -> EvaluationResult:
        """What holds of each of them, and which rules were over budget."""
        costs = RoundCosts(len(subjects), self._count)
        self._text_budget = _MAX_ROUND_TEXT
        before = set(self._disabled)
        answers = tuple(self._evaluate_subject(about, costs) for about in subjects)
        new = {name: why for name, why in self._disabled.items() if name not in before}
        return EvaluationResult(results=answers, disabled=new)

    def _evaluate_subject(self, about: SubjectFacts, costs: RoundCosts) -> RuleResults:
        asked = self._environments.local(about.scope).activation(about.facts)
        found: dict[str, RuleResult] = {}
        for group in list(self._groups[about.scope]):
            if not self._none_holds(group, about.scope, asked, costs):
                for compiled in group.rules:
                    self._evaluate_rule(compiled, asked, costs, found)
        for compiled in self._isolated[about.scope]:
            self._evaluate_rule(compiled, asked, costs, found)
        return found

    def _none_holds(
        self, group: RuleGroup, scope: Scope, asked: Activation, costs: RoundCosts
    ) -> bool:
        self._meter.start(group.names)
        holds_none = group.none_holds(asked)
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
        asked: Activation,
        costs: RoundCosts,
        found: dict[str, RuleResult],
    ) -> None:
        name = compiled.rule.name
        if name in self._disabled or compiled.condition is None:
            return
        self._meter.start((name,))
        held = compiled.condition.holds(asked)
        answer: RuleResult | None = None
        if isinstance(held, RuleFailed):
            answer = RuleFailed(self._truncate(held.problem))
        elif held:
            answer = RuleHolds(self._annotations(compiled, asked))
        if costs.add(self._meter.cpu_seconds(), name):
            for over, mean in costs.over_share().items():
                self._disabled[over] = (
                    f"it takes {mean * 1000:.3g} ms of CPU for one pod or node, and all rules "
                    f"together took more than {costs.budget:.3g} s"
                )
        # Not of annotations: there a container's message may say the same.
        if answer == RuleFailed(OUT_OF_MEMORY):
            self._disabled[name] = "it needs too much memory"
        elif answer is not None:
            found[name] = answer

    def _annotations(self, compiled: CompiledRule, asked: Activation) -> dict[str, str]:
        left = _MAX_ANNOTATIONS
        filled: dict[str, str] = {}
        for name, template in compiled.annotations.items():
            filled[name] = self._truncate(template.render(asked)[:left])
            left -= len(filled[name])
        return filled

    def _truncate(self, text: str) -> str:
        text = text[: self._text_budget]
        self._text_budget -= len(text)
        return text
