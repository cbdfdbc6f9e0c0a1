"""The default rules, and which of them the user's rule files replace or disable."""

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
    return (files("podstatus.alerts") / DEFAULT_RULES).read_text(encoding="utf-8")


def default_rules(checker: RuleChecker) -> LoadedRules:
    """Load all default rules. Raises EvaluatorError."""
    return load_rules(default_rules_text(), checker)


def effective_defaults(defaults: LoadedRules, sets: Sequence[RuleSet]) -> list[LoadedRule]:
    """Return the default rules that no rule file replaces by name or disables."""
    replaced = {rule.name for rule_set in sets for rule in rule_set.rules}
    disabled = {name for rule_set in sets for name in rule_set.disable}
    return [it for it in defaults.rules if it.rule.name not in replaced | disabled]


def unknown_disabled(defaults: LoadedRules, rule_set: RuleSet) -> Iterable[Diagnostic]:
    """Yield a diagnostic for each name in `disable` that is no default rule."""
    names = [loaded.rule.name for loaded in defaults.rules]
    for name, place in rule_set.disable.items():
        if name not in names:
            yield Diagnostic(
                location=place, message=f"disable: {_unknown_rule_message(name, names)}"
            )


def _unknown_rule_message(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, 1)
    return f"there is no default rule {name}" + (f"; did you mean {near[0]}?" if near else "")
