"""The default alert rules and those of the settings together, or all that is wrong with these."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from podstatus.alerts.defaults import default_rules, effective_defaults, unknown_disabled
from podstatus.alerts.evaluator.process import EvaluatorProcess
from podstatus.alerts.model import Action, Rule, RuleSet
from podstatus.alerts.rules.load import LoadedRule, LoadedRules, load_rules
from podstatus.client.auth.files import UnreadableError, read_file

_MAX_BYTES = 2**20


class AlertRulesError(Exception):
    """Files of rules cannot be used; a line for each mistake, with its place."""


class AlertRules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules, and what each file allows."""

    rules: tuple[LoadedRule, ...] = ()
    evaluator: EvaluatorProcess
    """Where they are evaluated; it has those of them that can be."""
    rule_sets: dict[str, RuleSet] = {}
    """By the name of a rule, what its file says."""
    errors: tuple[str, ...] = ()
    """What is wrong with rules that are not asked because of it, each with its place."""
    warnings: tuple[str, ...] = ()
    """What is right, but will not do what it seems to, each with its place."""

    def rule_set(self, rule: str) -> RuleSet:
        """What the file of a rule allows; of a rule that there is not, nothing."""
        return self.rule_sets.get(rule, RuleSet())

    def actions(self, defaults: Sequence[Action]) -> dict[str, tuple[Action, ...]]:
        """What each rule wants to have done; `defaults` of those that say nothing."""
        rules = (loaded.rule for loaded in self.rules)
        return {rule.name: rule.actions or self._default_actions(rule, defaults) for rule in rules}

    def _default_actions(self, rule: Rule, defaults: Sequence[Action]) -> tuple[Action, ...]:
        """Events of a pod are the kubelet's words: what nobody asked for is not among them."""
        is_default = rule.name not in self.rule_sets
        without = {"event"} if is_default and rule.scope == "pod" else set()
        return tuple(action for action in defaults if action.kind not in without)


def load_alert_rules(paths: Iterable[Path], evaluator: EvaluatorProcess) -> AlertRules:
    """The default rules as these files leave them, and theirs, ready to be evaluated.

    What is wrong with a rule keeps neither the others nor a node from their work: it is not asked,
    and says why. Raises AlertRulesError for files that cannot be used, and EvaluatorError.
    """
    defaults = default_rules(evaluator)
    theirs: list[LoadedRule] = []
    read: list[RuleSet] = []
    sets: dict[str, RuleSet] = {}
    where: dict[str, str] = {}
    mistakes: list[str] = []
    unasked: list[str] = []
    notes: list[str] = []
    for path in paths:
        try:
            loaded = load_rules(read_rule_file(path), evaluator)
        except AlertRulesError as error:
            mistakes.append(f"--alert-rules: {error}")
            continue
        wrong = (*loaded.errors, *unknown_disabled(defaults, loaded.rule_set))
        mistakes += (mistake.format(str(path)) for mistake in wrong)
        broken = {rule.rule.name for rule in loaded.rules if rule.problem}
        unasked += (mistake.format(str(path)) for mistake in wrong if mistake.rule in broken)
        mistakes += _duplicate_names(path, loaded, where)
        notes += (hint.format(str(path), "note: ") for hint in loaded.warnings)
        theirs += loaded.rules
        read.append(loaded.rule_set)
        for rule in loaded.rule_set.rules:
            sets[rule.name] = loaded.rule_set
            where[rule.name] = f"{path}:{rule.location.line}"
    if len(mistakes) > len(unasked):
        raise AlertRulesError("\n".join(mistakes))
    together = (*effective_defaults(defaults, read), *theirs)
    evaluator.load(it.rule for it in together if not it.problem)
    return AlertRules(
        rules=together,
        evaluator=evaluator,
        rule_sets=sets,
        errors=tuple(unasked),
        warnings=tuple(notes),
    )


def _duplicate_names(path: Path, loaded: LoadedRules, where: dict[str, str]) -> list[str]:
    return [
        f"{path}:{rule.location.line}:{rule.location.column}: there is a rule {rule.name} "
        "already, in "
        f"{where[rule.name]}"
        for rule in loaded.rule_set.rules
        if rule.name in where
    ]


def read_rule_file(path: Path) -> str:
    """The text of a file; a pipe is not waited for long. Raises AlertRulesError."""
    try:
        content = read_file(path, pipes=True)
    except UnreadableError as error:
        raise AlertRulesError(f"cannot read {path}: {error}") from error
    return decode_rules(content, str(path))


def decode_rules(content: bytes, name: str) -> str:
    """The text of what a file of this name holds. Raises AlertRulesError."""
    if len(content) > _MAX_BYTES:
        raise AlertRulesError(f"{name}: it has more than {_MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AlertRulesError(f"cannot read {name}: it is no text in UTF-8") from error
