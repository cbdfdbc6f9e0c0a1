"""Compile rules, and explain why a rule cannot be evaluated. Runs in the evaluator process.

Annotations are templates: `{{ pod.name }} restarted {{ pod.restarts }} times`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from podstatus.alerts.cel.compile_expression import (
    Activation,
    Environment,
    Expression,
    explain_failure,
    explain_type,
)
from podstatus.alerts.evaluator.ports import RuleCheck, RuleFailed
from podstatus.alerts.model import Location, Rule, Scope
from podstatus.alerts.rules.fact_variables import FACTS, trial_inputs
from podstatus.alerts.rules.static_checks import CompileDiagnostic, CompileError

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_MAX_LENGTH = 2_000
"""Characters in a rendered text."""
_MAX_ERRORS = 20
"""Per rule: locating an error in the file takes time, and CEL may report thousands."""


class Template(msgspec.Struct, frozen=True):
    """A text with embedded expressions."""

    parts: tuple[str | Expression, ...]

    def render(self, facts: Activation) -> str:
        """Render the text. An expression that fails is rendered as its error."""
        return "".join(
            part if isinstance(part, str) else _format_value(part.value(facts))
            for part in self.parts
        )[:_MAX_LENGTH]


class CompiledRule(msgspec.Struct, frozen=True, kw_only=True):
    rule: Rule
    condition: Expression
    annotations: Mapping[str, Template] = {}


class Environments:
    """The CEL environments of each scope."""

    def __init__(self) -> None:
        self._by_scope = {scope: Environment.for_scope(scope) for scope in FACTS}

    def __getitem__(self, scope: Scope) -> Environment:
        return self._by_scope[scope]

    def check(self, rules: Sequence[Rule]) -> Sequence[RuleCheck]:
        """Check each rule: a `RuleChecker` without a budget."""
        return [check_rule(rule, self) for rule in rules]


def compile_checked(rule: Rule, environments: Environments) -> CompiledRule:
    """Compile a rule that passed `check_rule`, without the trial inputs. Raises CompileError."""
    environment = environments[rule.scope]
    annotations = {
        name: compile_template(environment, text) for name, text in rule.annotations.items()
    }
    condition = environment.compile(rule.expression)
    return CompiledRule(rule=rule, condition=condition, annotations=annotations)


def check_rule(rule: Rule, environments: Environments) -> RuleCheck:
    """Return the errors in the expressions of a rule, each with its field."""
    environment = environments[rule.scope]
    errors: list[tuple[str, CompileDiagnostic]] = []
    if rule.expression.strip():
        errors += [("expr", error) for error in _condition_errors(rule, environment)]
    for name, text in rule.annotations.items():
        try:
            compile_template(environment, text)
        except CompileError as failure:
            errors += [(f"annotations.{name}", error) for error in failure.errors]
    return RuleCheck(errors=tuple(errors[:_MAX_ERRORS]))


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


def compile_template(environment: Environment, text: str) -> Template:
    """Compile a template. Raises CompileError with locations in the text."""
    parts: list[str | Expression] = []
    errors: list[CompileDiagnostic] = []
    after = 0
    for match in _BRACES.finditer(text):
        parts.append(text[after : match.start()])
        after = match.end()
        try:
            parts.append(_compile_part(environment, match[1]))
        except CompileError as failure:
            errors += [
                CompileDiagnostic(f.message, _shift_error(text, match.start(1), f.location))
                for f in failure.errors
            ]
    rest = text[after:]
    parts.append(rest)
    for braces, counterpart in (("{{", "}}"), ("}}", "{{")):
        if (at := rest.find(braces)) >= 0:
            errors.append(
                CompileDiagnostic(
                    f"{braces} without {counterpart}",
                    _shift_error(text, after + at, Location(1, 1)),
                )
            )
    if errors:
        raise CompileError(errors)
    return Template(tuple(part for part in parts if part != ""))


def _compile_part(environment: Environment, text: str) -> Expression:
    compiled = environment.compile(text)
    if compiled.type_name.startswith("optional"):
        raise CompileError([CompileDiagnostic('it may have no value; add a default: .orValue("")')])
    return compiled


def _shift_error(text: str, offset: int, inside: Location) -> Location:
    """Translate a location in an expression at this offset to a location in the text."""
    before = text[:offset]
    line = before.count("\n") + inside.line
    column = inside.column + (offset - before.rfind("\n") - 1 if inside.line == 1 else 0)
    return Location(line, column)


def _format_value(value: Any) -> str:
    match value:
        case RuleFailed():
            return f"<{value.problem}>"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case int():
            return str(value)
        case _:
            return json.dumps(value, default=str, ensure_ascii=False)
