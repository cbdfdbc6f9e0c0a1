"""Evaluate compiled rules about some subjects, and meter what each of them takes.

Rules are asked in groups first (rule_groups.py). A group that takes long is taken apart, a rule
that is over budget is left out from then on. For one thread.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from podstatus.alerts.cel.compile import CompiledRule, Environments
from podstatus.alerts.cel.expression import Asked
from podstatus.alerts.cel.rule_groups import RuleGroup, group_rules
from podstatus.alerts.evaluator.budget import (
    SLOW_GROUP_SECONDS,
    SLOW_GROUP_TIMES,
    TOO_SLOW_GROUP_SECONDS,
    RoundCosts,
)
from podstatus.alerts.evaluator.ports import About, Answer, Answers, Evaluated, Failed, Held
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

    def begin(self, rules: Sequence[str]) -> None:
        """One of these rules is evaluated now, or all of them together."""

    def seconds(self) -> float:
        """CPU seconds since `begin`."""


class NoMeter:
    """Costs nothing, and measures nothing."""

    def begin(self, rules: Sequence[str]) -> None:
        """It is not watched."""

    def seconds(self) -> float:
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
        apart: bool = False,
        meter: Meter = _NO_METER,
    ) -> None:
        """`apart`: each rule is asked by itself."""
        self._environments = environments
        self._meter = meter
        self._count = len(rules)
        self._off: dict[str, str] = {}
        self._text_left = _MAX_ROUND_TEXT
        self._slow: Counter[RuleGroup] = Counter()
        self._groups: dict[Scope, list[RuleGroup]] = {}
        self._apart: dict[Scope, list[CompiledRule]] = {}
        for scope in FACTS:
            here = [it for it in rules if it.rule.scope == scope and it.condition is not None]
            together, self._apart[scope] = ([], here) if apart else (here, [])
            self._groups[scope] = group_rules(together, environments.here(scope), begin=meter.begin)

    def leave_out(self, rules: Iterable[str]) -> None:
        """These are over budget."""
        self._off |= dict.fromkeys(rules, "")

    def take_apart(self) -> None:
        """Ask each rule by itself from now on."""
        for scope, groups in self._groups.items():
            self._apart[scope] += (compiled for group in groups for compiled in group.rules)
            groups.clear()

    def evaluate(self, subjects: Sequence[About]) -> Evaluated:
        """What holds of each of them, and which rules were over budget."""
        costs = RoundCosts(len(subjects), self._count)
        self._text_left = _MAX_ROUND_TEXT
        before = set(self._off)
        answers = tuple(self._answers(about, costs) for about in subjects)
        new = {name: why for name, why in self._off.items() if name not in before}
        return Evaluated(answers=answers, switched_off=new)

    def _answers(self, about: About, costs: RoundCosts) -> Answers:
        asked = self._environments.here(about.scope).facts(about.facts)
        found: dict[str, Answer] = {}
        for group in list(self._groups[about.scope]):
            if not self._holds_none(group, about.scope, asked, costs):
                for compiled in group.rules:
                    self._ask(compiled, asked, costs, found)
        for compiled in self._apart[about.scope]:
            self._ask(compiled, asked, costs, found)
        return found

    def _holds_none(self, group: RuleGroup, scope: Scope, asked: Asked, costs: RoundCosts) -> bool:
        self._meter.begin(group.names)
        holds_none = group.holds_none(asked)
        seconds = self._meter.seconds()
        costs.add(seconds)
        if seconds > SLOW_GROUP_SECONDS:
            self._slow[group] += 1
            if seconds > TOO_SLOW_GROUP_SECONDS or self._slow[group] == SLOW_GROUP_TIMES:
                self._groups[scope].remove(group)
                self._apart[scope] += group.rules
        return holds_none

    def _ask(
        self, compiled: CompiledRule, asked: Asked, costs: RoundCosts, found: dict[str, Answer]
    ) -> None:
        name = compiled.rule.name
        if name in self._off or compiled.condition is None:
            return
        self._meter.begin((name,))
        held = compiled.condition.holds(asked)
        answer: Answer | None = None
        if isinstance(held, Failed):
            answer = Failed(self._cut(held.problem))
        elif held:
            answer = Held(self._annotations(compiled, asked))
        if costs.add(self._meter.seconds(), name):
            for over, mean in costs.over_share().items():
                self._off[over] = (
                    f"it takes {mean * 1000:.3g} ms of CPU for one pod or node, and all rules "
                    f"together took more than {costs.budget:.3g} s"
                )
        # Not of annotations: there a container's message may say the same.
        if answer == Failed(OUT_OF_MEMORY):
            self._off[name] = "it needs too much memory"
        elif answer is not None:
            found[name] = answer

    def _annotations(self, compiled: CompiledRule, asked: Asked) -> dict[str, str]:
        left = _MAX_ANNOTATIONS
        filled: dict[str, str] = {}
        for name, template in compiled.annotations.items():
            filled[name] = self._cut(template.fill(asked)[:left])
            left -= len(filled[name])
        return filled

    def _cut(self, text: str) -> str:
        text = text[: self._text_left]
        self._text_left -= len(text)
        return text
