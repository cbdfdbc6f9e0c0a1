"""Load the default alert rules and those of `--alert-rules`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from podstatus.alerts.defaults import default_rules, effective_defaults, unknown_disabled
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.model import Action, Rule, RuleSet
from podstatus.alerts.rules.load import LoadedRule, LoadedRules, load_rules
from podstatus.client.auth.files import UnreadableError, read_file

_MAX_BYTES = 2**20


class AlertRulesError(Exception):
    """Rule files are invalid; one line per error, with file, line and column."""


class AlertRules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules, and the settings of their files."""

    rules: tuple[LoadedRule, ...] = ()
    evaluator: BudgetedEvaluator
    """The process that evaluates the rules; all valid ones are loaded into it."""
    rule_sets: dict[str, RuleSet] = {}
    """Rule name -> content of its file; default rules have none."""
    errors: tuple[str, ...] = ()
    """Errors of rules that are disabled because of them, each with its location."""
    warnings: tuple[str, ...] = ()
    """Valid but probably unintended settings, each with its location."""

    def rule_set(self, rule: str) -> RuleSet:
        """Return the content of the rule's file; an empty one if the rule has no file."""
        return self.rule_sets.get(rule, RuleSet())

    def actions(self, defaults: Sequence[Action]) -> dict[str, tuple[Action, ...]]:
        """Return rule name -> actions; `defaults` for rules that name none."""
        rules = (loaded.rule for loaded in self.rules)
        return {rule.name: rule.actions or self._default_actions(rule, defaults) for rule in rules}

    def _default_actions(self, rule: Rule, defaults: Sequence[Action]) -> tuple[Action, ...]:
        """Default rules record no events about pods: those are reserved for kubelet events."""
        is_default = rule.name not in self.rule_sets
        without = {"event"} if is_default and rule.scope == "pod" else set()
        return tuple(action for action in defaults if action.kind not in without)


def load_alert_rules(paths: Iterable[Path], evaluator: BudgetedEvaluator) -> AlertRules:
    """Load the default rules, as these files change them, and the rules of the files.

    A rule with an invalid expression is disabled with an error; it affects neither other rules
    nor the node. Raises AlertRulesError for invalid files, and EvaluatorError.
    """
    defaults = default_rules(evaluator)
    custom: list[LoadedRule] = []
    rule_sets: list[RuleSet] = []
    by_rule: dict[str, RuleSet] = {}
    locations: dict[str, str] = {}
    errors: list[str] = []
    disabled: list[str] = []
    warnings: list[str] = []
    for path in paths:
        try:
            loaded = load_rules(read_rule_file(path), evaluator)
        except AlertRulesError as error:
            errors.append(f"--alert-rules: {error}")
            continue
        diagnostics = (*loaded.errors, *unknown_disabled(defaults, loaded.rule_set))
        errors += (it.format(str(path)) for it in diagnostics)
        broken = {rule.rule.name for rule in loaded.rules if rule.problem}
        disabled += (it.format(str(path)) for it in diagnostics if it.rule in broken)
        errors += _duplicate_names(path, loaded, locations)
        warnings += (it.format(str(path), "note: ") for it in loaded.warnings)
        custom += loaded.rules
        rule_sets.append(loaded.rule_set)
        for rule in loaded.rule_set.rules:
            by_rule[rule.name] = loaded.rule_set
            locations[rule.name] = f"{path}:{rule.location.line}"
    if len(errors) > len(disabled):
        raise AlertRulesError("\n".join(errors))
    rules = (*effective_defaults(defaults, rule_sets), *custom)
    evaluator.load(it.rule for it in rules if not it.problem)
    return AlertRules(
        rules=rules,
        evaluator=evaluator,
        rule_sets=by_rule,
        errors=tuple(disabled),
        warnings=tuple(warnings),
    )


def _duplicate_names(path: Path, loaded: LoadedRules, locations: dict[str, str]) -> list[str]:
    return [
        f"{path}:{rule.location.line}:{rule.location.column}: duplicate rule {rule.name}, first "
        f"defined in {locations[rule.name]}"
        for rule in loaded.rule_set.rules
        if rule.name in locations
    ]


def read_rule_file(path: Path) -> str:
    """Return the text of a file or, with a timeout, of a pipe. Raises AlertRulesError."""
    try:
        content = read_file(path, pipes=True)
    except UnreadableError as error:
        raise AlertRulesError(f"cannot read {path}: {error}") from error
    return decode_rules(content, str(path))


def decode_rules(content: bytes, name: str) -> str:
    """Decode the content of the file `name`. Raises AlertRulesError."""
    if len(content) > _MAX_BYTES:
        raise AlertRulesError(f"{name}: the file has more than {_MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AlertRulesError(f"cannot read {name}: not UTF-8 text") from error
