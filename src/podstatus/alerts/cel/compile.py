"""Rules that can be asked, and why others cannot. For the process that evaluates rules."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podstatus.alerts.cel.expression import Environment, Expression, explain_failure, explain_type
from podstatus.alerts.cel.template import Template, compile_template
from podstatus.alerts.evaluator.ports import RuleCheck, RuleFailed
from podstatus.alerts.model import Rule, Scope
from podstatus.alerts.rules.facts import FACTS, SYNC_FACTS, trial_inputs
from podstatus.alerts.rules.static_checks import CompileDiagnostic, CompileError

_NO_SYNC = "it does not apply here: it asks for sync facts, and nobody here sends statuses"

_MAX_ERRORS = 20
"""Of one rule: to find the place of each in its file takes time, and CEL may find thousands."""


class CompiledRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and what it takes to ask it."""

    rule: Rule
    condition: Expression | None = None
    """None: it cannot be asked."""
    annotations: Mapping[str, Template] = {}
    problem: str = ""
    """Why it cannot be asked."""


class Environments:
    """What rules of each scope may name, here."""

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync
        """Whether there are sync facts: an agent has them."""
        self._full = {scope: Environment.for_scope(scope) for scope in FACTS}
        known = [fact for fact in FACTS["node"] if sync or fact not in SYNC_FACTS]
        self._local = self._full | {"node": Environment(known)}

    def local(self, scope: Scope) -> Environment:
        """With the facts that are told here."""
        return self._local[scope]

    def full(self, scope: Scope) -> Environment:
        """With all facts that there are."""
        return self._full[scope]

    def check(self, rules: Sequence[Rule]) -> Sequence[RuleCheck]:
        """What is wrong with each of them: a `RuleChecker` without a budget."""
        return [check_rule(rule, self) for rule in rules]


def check_rule(rule: Rule, environments: Environments) -> RuleCheck:
    """What is wrong with a rule, or why it does not apply here."""
    if flaws := _rule_errors(rule, environments):
        return RuleCheck(errors=tuple(flaws[:_MAX_ERRORS]))
    return RuleCheck(problem=compile_checked(rule, environments).problem)


def compile_rule(rule: Rule, environments: Environments) -> CompiledRule:
    """A rule that can be asked, or one that says why not."""
    if flaws := _rule_errors(rule, environments):
        return CompiledRule(rule=rule, problem=flaws[0][1].message)
    return compile_checked(rule, environments)


def compile_checked(rule: Rule, environments: Environments) -> CompiledRule:
    """The same of a rule that was checked: it is not tried on samples again."""
    environment = environments.local(rule.scope)
    try:
        condition = environment.compile(rule.expression)
        annotations = {
            name: compile_template(environment, text) for name, text in rule.annotations.items()
        }
    except CompileError:
        # Right, but not with what is known here.
        return CompiledRule(rule=rule, problem=_NO_SYNC)
    return CompiledRule(rule=rule, condition=condition, annotations=annotations)


def _rule_errors(rule: Rule, environments: Environments) -> list[tuple[str, CompileDiagnostic]]:
    """What is wrong with the texts of a rule, wherever it is asked; with the field each is of."""
    environment = environments.full(rule.scope)
    found: list[tuple[str, CompileDiagnostic]] = []
    if rule.expression.strip():
        found += [("expr", flaw) for flaw in _condition_errors(rule, environment)]
    for name, text in rule.annotations.items():
        try:
            compile_template(environment, text)
        except CompileError as error:
            found += [(f"annotations.{name}", flaw) for flaw in error.errors]
    return found


def _condition_errors(rule: Rule, environment: Environment) -> Iterable[CompileDiagnostic]:
    try:
        condition = environment.compile(rule.expression)
    except CompileError as error:
        return error.errors
    if not condition.is_bool:
        return [CompileDiagnostic(explain_type(condition.type_name))]
    for like, facts in trial_inputs(rule.scope).items():
        held = condition.holds(environment.activation(facts))
        if isinstance(held, RuleFailed):
            return [CompileDiagnostic(explain_failure(rule.expression, like, held.problem))]
    return []
