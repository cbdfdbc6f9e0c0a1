"""Validate alert rule files for `podstatus alerts check`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from podstatus.agent.compose.alert_rules import AlertRulesError, decode_rules, read_rule_file
from podstatus.alerts.defaults import default_rules, unknown_disabled
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.alerts.model import Diagnostic, Rule, sort_diagnostics
from podstatus.alerts.notifiers.secret_files import file_errors
from podstatus.alerts.rules.load import LoadedRules, load_rules
from podstatus.cli.render.tables import Table
from podstatus.cli.styled_output import print_table
from podstatus.cli.terminal import write
from podstatus.kube.scalars.duration import format_duration

_STDIN, _STDIN_NAME = "-", "<stdin>"


def check_rules(files: Sequence[Path]) -> bool:
    """Print the errors of each file, or its rules; return True if all are valid."""
    with BudgetedEvaluator() as evaluator:
        valid = [_check(str(file), evaluator) for file in files]
    return all(valid)


def _check(file: str, evaluator: BudgetedEvaluator) -> bool:
    """Print errors or rules of a file; return True if it is valid."""
    try:
        loaded = load_rules(_read(file), evaluator)
        defaults = default_rules(evaluator)
    except (AlertRulesError, EvaluatorError) as error:
        write(f"{error}\n", err=True)
        return False
    name = _STDIN_NAME if file == _STDIN else file
    errors = (*loaded.errors, *unknown_disabled(defaults, loaded.rule_set))
    for error_line in errors:
        write(f"{error_line.format(name)}\n", err=True)
    for warning in sort_diagnostics((*loaded.warnings, *_file_warnings(loaded))):
        write(f"{warning.format(name, 'note: ')}\n", err=True)
    if errors:
        return False
    if loaded.rules:
        print_table(_table(loaded))
    write(f"{name}: {_summary(loaded)}\n")
    return True


def _file_warnings(loaded: LoadedRules) -> Iterator[Diagnostic]:
    """Unusable secret files; only warnings, since they may exist on the agent's machine."""
    for action in (action for rule in loaded.rule_set.rules for action in rule.actions):
        for problem in file_errors(action):
            yield Diagnostic(location=action.place, message=problem)


def _read(file: str) -> str:
    if file == _STDIN:
        return decode_rules(sys.stdin.buffer.read(), _STDIN_NAME)
    return read_rule_file(Path(file))


def _table(loaded: LoadedRules) -> Table:
    headings = ("NAME", "SCOPE", "FOR", "KEEP", "SEVERITY", "ACTIONS")
    return Table(headings, tuple(_row(rule) for rule in loaded.rule_set.rules))


def _row(rule: Rule) -> tuple[str, ...]:
    actions = ", ".join(action.kind for action in rule.actions) or "<default>"
    times = (rule.for_seconds, rule.keep_firing_for_seconds)
    spans = (format_duration(seconds) if seconds else "-" for seconds in times)
    return (rule.name, rule.scope, *spans, rule.severity, actions)


def _summary(loaded: LoadedRules) -> str:
    count = len(loaded.rules)
    rules = f"{count} rule{'' if count == 1 else 's'}"
    allowed = sorted(loaded.rule_set.allow_actions)
    if not allowed:
        return f"{rules}; actions that change pods or nodes are off (allowActions is empty)"
    mode = ", only as a dry run (dryRun)" if loaded.rule_set.dry_run else ""
    return f"{rules}; allowActions: {', '.join(allowed)}{mode}"
