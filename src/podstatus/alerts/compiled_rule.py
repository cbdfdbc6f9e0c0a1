"""Rules that can be asked, and why others cannot."""

from collections.abc import Iterable, Mapping

import msgspec

from podstatus.alerts.expression import Environment, Expression, ExpressionError, Failed, Flaw
from podstatus.alerts.expression_cures import failure_told, kind_told
from podstatus.alerts.fact_table import FACTS, SYNC_FACTS
from podstatus.alerts.known_words import strange_words
from podstatus.alerts.mistake import Mistake, in_order
from podstatus.alerts.rule import Rule, RuleSet, Scope
from podstatus.alerts.rule_file import ReadRules, read_rules
from podstatus.alerts.samples import samples
from podstatus.alerts.template import Template, compile_template

_NO_SYNC = "it does not apply here: it asks for sync facts, and nobody here sends statuses"


class CompiledRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and what it takes to ask it."""

    rule: Rule
    condition: Expression | None = None
    """None: it cannot be asked."""
    annotations: Mapping[str, Template] = {}
    problem: str = ""
    """Why it cannot be asked."""


class LoadedRules(msgspec.Struct, frozen=True, kw_only=True):
    """All of a file."""

    rule_set: RuleSet
    rules: tuple[CompiledRule, ...]
    """All that have a name, in the order of the file."""
    mistakes: tuple[Mistake, ...] = ()
    hints: tuple[Mistake, ...] = ()


class Environments:
    """What rules of each scope may name, here."""

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync
        """Whether there are sync facts: an agent has them."""
        self._all = {scope: Environment.of(scope) for scope in FACTS}
        known = [fact for fact in FACTS["node"] if sync or fact not in SYNC_FACTS]
        self._here = self._all | {"node": Environment(known)}

    def here(self, scope: Scope) -> Environment:
        """With the facts that are told here."""
        return self._here[scope]

    def everywhere(self, scope: Scope) -> Environment:
        """With all facts that there are."""
        return self._all[scope]


def load_rules(text: str, environments: Environments) -> LoadedRules:
    """The rules of a file, compiled. What is wrong with one does not touch the others."""
    read = read_rules(text)
    broken = {m.rule: m for m in reversed(read.mistakes)}
    compiled, mistakes, hints = [], list(read.mistakes), list(read.hints)
    for rule in read.nameless:
        mistakes += _placed_flaws(read, rule, environments)
    for rule in read.rules.rules:
        placed = _placed_flaws(read, rule, environments)
        mistakes += placed
        hints += () if placed else _hints(read, rule)
        first = broken.get(rule.name) or next(iter(placed), None)
        compiled.append(
            compile_rule(rule, environments)
            if first is None
            else CompiledRule(rule=rule, problem=f"line {first.place.line}: {first.message}")
        )
    return LoadedRules(
        rule_set=read.rules,
        rules=tuple(compiled),
        mistakes=in_order(mistakes),
        hints=in_order(hints),
    )


def compile_rule(rule: Rule, environments: Environments) -> CompiledRule:
    """A rule that can be asked, or one that says why not."""
    if flaws := _flaws(rule, environments):
        return CompiledRule(rule=rule, problem=flaws[0][1].message)
    environment = environments.here(rule.scope)
    try:
        condition = environment.compile(rule.expression)
        annotations = {
            name: compile_template(environment, text) for name, text in rule.annotations.items()
        }
    except ExpressionError:
        # Right, but not with what is known here.
        return CompiledRule(rule=rule, problem=_NO_SYNC)
    return CompiledRule(rule=rule, condition=condition, annotations=annotations)


def _flaws(rule: Rule, environments: Environments) -> list[tuple[str, Flaw]]:
    """What is wrong with the texts of a rule, wherever it is asked; with the field each is of."""
    environment = environments.everywhere(rule.scope)
    found: list[tuple[str, Flaw]] = []
    if rule.expression.strip():
        found += [("expr", flaw) for flaw in _condition_flaws(rule, environment)]
    for name, text in rule.annotations.items():
        try:
            compile_template(environment, text)
        except ExpressionError as error:
            found += [(f"annotations.{name}", flaw) for flaw in error.flaws]
    return found


def _condition_flaws(rule: Rule, environment: Environment) -> Iterable[Flaw]:
    try:
        condition = environment.compile(rule.expression)
    except ExpressionError as error:
        return error.flaws
    if not condition.is_bool:
        return [Flaw(kind_told(condition.kind))]
    for like, facts in samples(rule.scope).items():
        held = condition.holds(environment.facts(facts))
        if isinstance(held, Failed):
            return [Flaw(failure_told(rule.expression, like, held.problem))]
    return []


def _placed_flaws(read: ReadRules, rule: Rule, environments: Environments) -> list[Mistake]:
    return [_placed(read, rule, field, flaw) for field, flaw in _flaws(rule, environments)]


def _hints(read: ReadRules, rule: Rule) -> list[Mistake]:
    return [_placed(read, rule, "expr", flaw) for flaw in strange_words(rule.expression)]


def _placed(read: ReadRules, rule: Rule, field: str, flaw: Flaw) -> Mistake:
    place = read.place(rule.name, field, flaw.place)
    return Mistake(place=place, message=f"{field}: {flaw.message}", rule=rule.name)
