"""Load a rule file: parse it, check every rule, and collect all errors."""

import msgspec

from podstatus.alerts.evaluator.ports import RuleCheck, RuleChecker
from podstatus.alerts.model import Diagnostic, Rule, RuleSet, sort_diagnostics
from podstatus.alerts.rules.parse_rule_file import ParsedRules, read_rules
from podstatus.alerts.rules.static_checks import CompileDiagnostic, unknown_literals


class LoadedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and whether it can be evaluated."""

    rule: Rule
    problem: str = ""
    """Why it cannot be evaluated; empty if it can."""


class LoadedRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules and diagnostics of a file."""

    rule_set: RuleSet
    rules: tuple[LoadedRule, ...]
    """All rules with a name, in file order."""
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


def load_rules(text: str, checker: RuleChecker) -> LoadedRules:
    """Load a rule file. An error in one rule does not affect the others.

    Raises EvaluatorError.
    """
    parsed = read_rules(text)
    broken = {m.rule: m for m in reversed(parsed.errors)}
    loaded, errors, warnings = [], list(parsed.errors), list(parsed.warnings)
    named = parsed.rules.rules
    checks = checker.check([*parsed.unnamed, *named])
    for rule, check in zip(parsed.unnamed, checks, strict=False):
        errors += _diagnostics(parsed, rule, check)
    for rule, check in zip(named, checks[len(parsed.unnamed) :], strict=True):
        rule_errors = _diagnostics(parsed, rule, check)
        errors += rule_errors
        if not rule_errors:
            literals = unknown_literals(rule.expression)
            warnings += (_diagnostic(parsed, rule, "expr", error) for error in literals)
        first = broken.get(rule.name) or next(iter(rule_errors), None)
        problem = f"line {first.location.line}: {first.message}" if first else ""
        loaded.append(LoadedRule(rule=rule, problem=problem))
    return LoadedRules(
        rule_set=parsed.rules,
        rules=tuple(loaded),
        errors=sort_diagnostics(errors),
        warnings=sort_diagnostics(warnings),
    )


def _diagnostics(parsed: ParsedRules, rule: Rule, check: RuleCheck) -> list[Diagnostic]:
    return [_diagnostic(parsed, rule, field, error) for field, error in check.errors]


def _diagnostic(
    parsed: ParsedRules, rule: Rule, field: str, error: CompileDiagnostic
) -> Diagnostic:
    place = parsed.location(rule.name, field, error.location)
    return Diagnostic(location=place, message=f"{field}: {error.message}", rule=rule.name)
