"""The rules of a file, each checked: which can be asked, and what is wrong with the others."""

import msgspec

from podstatus.alerts.evaluator.ports import RuleCheck, RuleChecker
from podstatus.alerts.model import Mistake, Rule, RuleSet, in_order
from podstatus.alerts.rules.literals import strange_words
from podstatus.alerts.rules.rule_file import ReadRules, read_rules
from podstatus.alerts.rules.static_checks import Flaw


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
    mistakes: tuple[Mistake, ...] = ()
    hints: tuple[Mistake, ...] = ()


def load_rules(text: str, checker: RuleChecker) -> LoadedRules:
    """The rules of a file. What is wrong with one does not touch the others.

    Raises EvaluatorError.
    """
    read = read_rules(text)
    broken = {m.rule: m for m in reversed(read.mistakes)}
    loaded, mistakes, hints = [], list(read.mistakes), list(read.hints)
    named = read.rules.rules
    checks = checker.check([*read.nameless, *named])
    for rule, check in zip(read.nameless, checks, strict=False):
        mistakes += _placed_flaws(read, rule, check)
    for rule, check in zip(named, checks[len(read.nameless) :], strict=True):
        placed = _placed_flaws(read, rule, check)
        mistakes += placed
        hints += () if placed else _hints(read, rule)
        first = broken.get(rule.name) or next(iter(placed), None)
        problem = f"line {first.place.line}: {first.message}" if first else check.problem
        loaded.append(LoadedRule(rule=rule, problem=problem))
    return LoadedRules(
        rule_set=read.rules,
        rules=tuple(loaded),
        mistakes=in_order(mistakes),
        hints=in_order(hints),
    )


def _placed_flaws(read: ReadRules, rule: Rule, check: RuleCheck) -> list[Mistake]:
    return [_placed(read, rule, field, flaw) for field, flaw in check.flaws]


def _hints(read: ReadRules, rule: Rule) -> list[Mistake]:
    return [_placed(read, rule, "expr", flaw) for flaw in strange_words(rule.expression)]


def _placed(read: ReadRules, rule: Rule, field: str, flaw: Flaw) -> Mistake:
    place = read.place(rule.name, field, flaw.place)
    return Mistake(place=place, message=f"{field}: {flaw.message}", rule=rule.name)
