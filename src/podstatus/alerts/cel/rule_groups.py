"""Groups of rules that are evaluated as one disjunction first.

For most pods no rule holds, and calling CEL costs more than evaluating: twelve rules in one
expression take 5 µs, one after the other 25. Only if the disjunction is not false is each rule
evaluated by itself.
"""

from collections.abc import Callable, Sequence

from podstatus.alerts.cel.compile_expression import Activation, Environment, Expression
from podstatus.alerts.cel.compile_rule import CompiledRule
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.rules.static_checks import CompileError

_MAX_GROUP_SIZE = 16
"""Rules in a group. If one holds or fails, every rule of its group is evaluated."""


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
        """True only if no rule of the group holds or fails."""
        return self._disjunction is not None and self._disjunction.holds(facts) is False

    def evaluate(self, facts: Activation) -> list[tuple[str, bool | RuleFailed]]:
        """Return the result of each rule by name; empty if none holds or fails."""
        if self.none_holds(facts):
            return []
        return [(name, condition.holds(facts)) for name, condition in self._conditions]


def group_rules(
    rules: Sequence[CompiledRule],
    environment: Environment,
    *,
    on_start: Callable[[Sequence[str]], None],
) -> list[RuleGroup]:
    """Group the compiled rules of a scope.

    `on_start` is called with the rule names of a group before it is compiled."""
    compilable = [compiled for compiled in rules if compiled.condition is not None]
    groups = []
    for start in range(0, len(compilable), _MAX_GROUP_SIZE):
        members = compilable[start : start + _MAX_GROUP_SIZE]
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
