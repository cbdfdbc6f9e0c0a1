"""Rules that are asked together first: whether any of them holds at all.

Of most pods no rule holds, and to ask costs more than to think: twelve rules in one expression
take 5 µs, one after the other 25. Only if that one is not plainly false is each asked by itself.
"""

from collections.abc import Callable, Sequence

from podstatus.alerts.cel.compile import CompiledRule
from podstatus.alerts.cel.expression import Activation, Environment, Expression
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.rules.static_checks import CompileError

_MAX_GROUP_SIZE = 16
"""Rules of a group: one that holds, or fails, has the others of its group asked too."""


class RuleGroup:
    """Some rules of one scope."""

    def __init__(self, rules: Sequence[CompiledRule], environment: Environment) -> None:
        self.rules = rules
        self.names = tuple(compiled.rule.name for compiled in rules)
        self._conditions = [
            (compiled.rule.name, compiled.condition)
            for compiled in rules
            if compiled.condition is not None
        ]
        self._disjunction = _compile_disjunction(rules, environment)

    def none_holds(self, facts: Activation) -> bool:
        """Whether none of them holds, and none fails, for certain."""
        return self._disjunction is not None and self._disjunction.holds(facts) is False

    def evaluate(self, facts: Activation) -> list[tuple[str, bool | RuleFailed]]:
        """Of each rule by its name whether it holds; nothing if none does."""
        if self.none_holds(facts):
            return []
        return [(name, condition.holds(facts)) for name, condition in self._conditions]


def group_rules(
    rules: Sequence[CompiledRule],
    environment: Environment,
    *,
    on_start: Callable[[Sequence[str]], None] = lambda _: None,
) -> list[RuleGroup]:
    """All rules of a scope that can be asked, in groups; `on_start` is called before each of them
    is compiled, with the names of its rules."""
    asked = [compiled for compiled in rules if compiled.condition is not None]
    groups = []
    for start in range(0, len(asked), _MAX_GROUP_SIZE):
        together = asked[start : start + _MAX_GROUP_SIZE]
        on_start([compiled.rule.name for compiled in together])
        groups.append(RuleGroup(together, environment))
    return groups


def _compile_disjunction(
    rules: Sequence[CompiledRule], environment: Environment
) -> Expression | None:
    """True or an error if any of them is; None if that cannot be said in one expression.

    Each has lines of its own, since it may end with a remark. What is true hides what fails
    beside it, but false is said only if each of them is false.
    """
    text = " || ".join(f"(\n{compiled.rule.expression}\n)" for compiled in rules)
    try:
        return environment.compile(text)
    except CompileError:  # too long, or too deep
        return None
