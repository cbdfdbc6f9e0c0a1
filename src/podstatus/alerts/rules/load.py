"""The rules of a file, each checked: which can be asked, and what is wrong with the others."""

import msgspec

from podstatus.alerts.evaluator.ports import RuleCheck, RuleChecker
from podstatus.alerts.model import Diagnostic, Rule, RuleSet, sort_diagnostics
from podstatus.alerts.rules.literals import unknown_literals
from podstatus.alerts.rules.rule_file import ParsedRules, read_rules
from podstatus.alerts.rules.static_checks import CompileDiagnostic


class LoadedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule."""

    rule: Rule
    problem: str = ""
    """Why it cannot be asked; empty: it can."""


class LoadedRules(msgspec.Struct, frozen=True, kw_only=True):
    """All of a file."""

    rule_set: RuleSet
    rules: tuple[LoadedRule, ...]
    """All that have a name, in the order of the file."""
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


def load_rules(text: str, checker: RuleChecker) -> LoadedRules:
    """The rules of a file. What is wrong with one does not touch the others.

    Raises EvaluatorError.
    """
    read = read_rules(text)
    broken = {m.rule: m for m in reversed(read.errors)}
    loaded, mistakes, hints = [], list(read.errors), list(read.warnings)
    named = read.rules.rules
    checks = checker.check([*read.unnamed, *named])
    for rule, check in zip(read.unnamed, checks, strict=False):
        mistakes += _diagnostics(read, rule, check)
    for rule, check in zip(named, checks[len(read.unnamed) :], strict=True):
        placed = _diagnostics(read, rule, check)
        mistakes += placed
        hints += () if placed else _warnings(read, rule)
        first = broken.get(rule.name) or next(iter(placed), None)
        problem = f"line {first.location.line}: {first.message}" if first else check.problem
        loaded.append(LoadedRule(rule=rule, problem=problem))
    return LoadedRules(
        rule_set=read.rules,
        rules=tuple(loaded),
        errors=sort_diagnostics(mistakes),
        warnings=sort_diagnostics(hints),
    )


def _diagnostics(read: ParsedRules, rule: Rule, check: RuleCheck) -> list[Diagnostic]:
    return [_diagnostic(read, rule, field, flaw) for field, flaw in check.errors]


def _warnings(read: ParsedRules, rule: Rule) -> list[Diagnostic]:
    return [_diagnostic(read, rule, "expr", flaw) for flaw in unknown_literals(rule.expression)]


def _diagnostic(read: ParsedRules, rule: Rule, field: str, flaw: CompileDiagnostic) -> Diagnostic:
    place = read.location(rule.name, field, flaw.location)
    return Diagnostic(location=place, message=f"{field}: {flaw.message}", rule=rule.name)
