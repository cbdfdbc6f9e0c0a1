"""The rules that an agent has by itself, and what files of rules make of them."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from podstatus.alerts.evaluator.ports import RuleChecker
from podstatus.alerts.model import Diagnostic, RuleSet
from podstatus.alerts.rules.load import LoadedRule, LoadedRules, load_rules

DEFAULT_RULES = "default_rules.yaml"


@cache
def default_rules_text() -> str:
    """The file of the default rules, to be read by people too."""
    return (files("podstatus.alerts") / DEFAULT_RULES).read_text(encoding="utf-8")


def default_rules(checker: RuleChecker) -> LoadedRules:
    """All of them. Raises EvaluatorError."""
    return load_rules(default_rules_text(), checker)


def effective_defaults(defaults: LoadedRules, sets: Sequence[RuleSet]) -> list[LoadedRule]:
    """Those that no file replaces by one of the same name, or switches off."""
    theirs = {rule.name for told in sets for rule in told.rules}
    off = {name for told in sets for name in told.disable}
    return [it for it in defaults.rules if it.rule.name not in theirs | off]


def unknown_disabled(defaults: LoadedRules, rule_set: RuleSet) -> Iterable[Diagnostic]:
    """What a file switches off though there is no such rule."""
    known = [loaded.rule.name for loaded in defaults.rules]
    for name, place in rule_set.disable.items():
        if name not in known:
            yield Diagnostic(
                location=place, message=f"disable: {_unknown_rule_message(name, known)}"
            )


def _unknown_rule_message(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"there is no default rule {name}" + (f"; did you mean {near[0]}?" if near else "")
