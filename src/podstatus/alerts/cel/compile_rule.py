"""Compile rules, and explain why a rule cannot be evaluated. Runs in the evaluator process."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podstatus.alerts.cel.compile_expression import (
    Environment,
    Expression,
    explain_failure,
    explain_type,
)
from podstatus.alerts.cel.template import Template, compile_template
from podstatus.alerts.evaluator.ports import RuleCheck, RuleFailed
from podstatus.alerts.model import Rule, Scope
from podstatus.alerts.rules.fact_variables import FACTS, SYNC_FACTS, trial_inputs
from podstatus.alerts.rules.static_checks import CompileDiagnostic, CompileError

_NO_SYNC = "it does not apply here: it uses sync facts, and this process sends no statuses"

_MAX_ERRORS = 20
"""Per rule: locating an error in the file takes time, and CEL may report thousands."""


class CompiledRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with its compiled expression and annotations."""

    rule: Rule
    condition: Expression | None = None
    """None if the rule cannot be evaluated."""
    annotations: Mapping[str, Template] = {}
    problem: str = ""
    """Why the rule cannot be evaluated."""


class Environments:
    """The CEL environments of each scope."""

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync
        """Whether sync facts exist: an agent has them, an observer does not."""
        self._full = {scope: Environment.for_scope(scope) for scope in FACTS}
        facts = [fact for fact in FACTS["node"] if sync or fact not in SYNC_FACTS]
        self._local = self._full | {"node": Environment(facts)}

    def local(self, scope: Scope) -> Environment:
        """Return the environment with the facts that this process provides."""
        return self._local[scope]

    def full(self, scope: Scope) -> Environment:
        return self._full[scope]

    def check(self, rules: Sequence[Rule]) -> Sequence[RuleCheck]:
        """Check each rule: a `RuleChecker` without a budget."""
        return [check_rule(rule, self) for rule in rules]


def check_rule(rule: Rule, environments: Environments) -> RuleCheck:
    """Return the errors of a rule, or why it does not apply here."""
    if errors := _rule_errors(rule, environments):
        return RuleCheck(errors=tuple(errors[:_MAX_ERRORS]))
    return RuleCheck(problem=compile_checked(rule, environments).problem)


def compile_rule(rule: Rule, environments: Environments) -> CompiledRule:
    """Compile a rule; one that cannot be compiled has `problem` set."""
    if errors := _rule_errors(rule, environments):
        return CompiledRule(rule=rule, problem=errors[0][1].message)
    return compile_checked(rule, environments)


def compile_checked(rule: Rule, environments: Environments) -> CompiledRule:
    """Compile a rule that passed `check_rule`, without the trial inputs."""
    environment = environments.local(rule.scope)
    try:
        condition = environment.compile(rule.expression)
        annotations = {
            name: compile_template(environment, text) for name, text in rule.annotations.items()
        }
    except CompileError:
        # Valid, but not with the facts of this process.
        return CompiledRule(rule=rule, problem=_NO_SYNC)
    return CompiledRule(rule=rule, condition=condition, annotations=annotations)


def _rule_errors(rule: Rule, environments: Environments) -> list[tuple[str, CompileDiagnostic]]:
    """Return the errors in the expressions of a rule, each with its field, for any environment."""
    environment = environments.full(rule.scope)
    errors: list[tuple[str, CompileDiagnostic]] = []
    if rule.expression.strip():
        errors += [("expr", error) for error in _condition_errors(rule, environment)]
    for name, text in rule.annotations.items():
        try:
            compile_template(environment, text)
        except CompileError as failure:
            errors += [(f"annotations.{name}", error) for error in failure.errors]
    return errors


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
