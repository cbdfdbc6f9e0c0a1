"""`podstatus alerts test`: run alert rules against scripted or recorded pods."""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from podstatus.agent.compose.alert_rules import AlertRulesError, read_rule_file
from podstatus.alerts.defaults import default_rules, effective_defaults
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.alerts.model import Diagnostic, sort_diagnostics
from podstatus.alerts.rule_tests.cases import (
    RuleTest,
    RuleTestFile,
    format_subject,
    read_rule_tests,
)
from podstatus.alerts.rule_tests.replay import HistoryDriver
from podstatus.alerts.rule_tests.run import (
    AlertChange,
    Difference,
    RuleTestResult,
    ScriptedDriver,
    run_rule_test,
)
from podstatus.alerts.rules.load import LoadedRule, LoadedRules, load_rules
from podstatus.cli.terminal import write
from podstatus.kube.scalars.duration import format_duration
from podstatus.observe.history.sqlite_store import HistoryEntry, HistoryError, open_history_reader

_DEFAULT_RULES = "default"
_HISTORY_FILE = "history.db"
_PAGE_SIZE = 10_000
_SECOND = 1_000_000_000


class _InvalidFileError(Exception):
    """A test file is invalid; one line per error."""


def test_rules(files: Sequence[Path], *, verbose: bool) -> bool:
    """Run the tests of each file and print the differences; return True if all pass."""
    with BudgetedEvaluator() as evaluator:
        passed = [_test(file, evaluator, verbose=verbose) for file in files]
    return all(passed)


def _test(file: Path, evaluator: BudgetedEvaluator, *, verbose: bool) -> bool:
    """Run the tests of a file; return True if all pass."""
    try:
        test_file = _read(file)
        rules = _rules(file, test_file, evaluator)
        evaluator.load(it.rule for it in rules if not it.problem)
        failed = [
            test.name
            for test in test_file.tests
            if not _run_test(file, test, rules, evaluator, verbose=verbose)
        ]
    except (_InvalidFileError, EvaluatorError) as error:
        write(f"{error}\n", err=True)
        return False
    count = len(test_file.tests)
    tests = f"{count} test{'' if count == 1 else 's'}"
    result = f"{len(failed)} of {tests} failed" if failed else f"{tests} passed"
    write(f"{file}: {result}\n")
    return not failed


def _read(file: Path) -> RuleTestFile:
    test_file, errors = read_rule_tests(_text(file))
    if errors:
        raise _InvalidFileError("\n".join(error.format(str(file)) for error in errors))
    return test_file


def _rules(
    file: Path, test_file: RuleTestFile, evaluator: BudgetedEvaluator
) -> tuple[LoadedRule, ...]:
    """The rules under test. Raises _InvalidFileError."""
    loaded: list[LoadedRules] = []
    errors: list[str] = []
    for name in test_file.rules:
        if name != _DEFAULT_RULES:
            path = file.parent / name
            loaded.append(load_rules(_text(path), evaluator))
            errors += (error.format(str(path)) for error in loaded[-1].errors)
    rules = [rule for each in loaded for rule in each.rules]
    if _DEFAULT_RULES in test_file.rules or not test_file.rules:
        defaults = default_rules(evaluator)
        rules = [*effective_defaults(defaults, [each.rule_set for each in loaded]), *rules]
    names = {loaded_rule.rule.name for loaded_rule in rules}
    unknown = sort_diagnostics(it for test in test_file.tests for it in _unknown_rules(test, names))
    errors += (error.format(str(file)) for error in unknown)
    if errors:
        raise _InvalidFileError("\n".join(errors))
    return tuple(rules)


def _unknown_rules(test: RuleTest, rule_names: Collection[str]) -> Iterator[Diagnostic]:
    """Errors for rules that a test names but that do not exist."""
    for name in sorted(test.only):
        if name not in rule_names:
            yield Diagnostic(
                location=test.location, message=f"only: {_unknown_rule_message(name, rule_names)}"
            )
    for expected in (it for step in test.steps for it in step.expect or ()):
        if expected.rule not in rule_names:
            message = f"expect: {_unknown_rule_message(expected.rule, rule_names)}"
            yield Diagnostic(location=expected.location, message=message)


def _unknown_rule_message(name: str, rule_names: Collection[str]) -> str:
    near = get_close_matches(name, rule_names, 1)
    return f"there is no rule {name}" + (f"; did you mean {near[0]}?" if near else "")


def _run_test(
    file: Path,
    test: RuleTest,
    rules: tuple[LoadedRule, ...],
    evaluator: BudgetedEvaluator,
    *,
    verbose: bool,
) -> bool:
    if test.history:
        entries = _read_history(file, test)
        outcome = run_rule_test(test, rules, evaluator, partial(HistoryDriver, entries=entries))
    else:
        outcome = run_rule_test(test, rules, evaluator, ScriptedDriver)
    _print_result(file, test, outcome, verbose=verbose)
    return not outcome.differences and not outcome.problems


def _read_history(file: Path, test: RuleTest) -> list[HistoryEntry]:
    """All entries of a history; its path may be that of a root directory."""
    path = file.parent / test.history
    path = path / _HISTORY_FILE if path.is_dir() else path
    entries: list[HistoryEntry] = []
    try:
        with open_history_reader(path) as history:
            while page := history.entries_after(entries[-1].id if entries else 0, limit=_PAGE_SIZE):
                entries += page
    except HistoryError as error:
        problem = str(error) if path.exists() else f"no such file: {path}"
        diagnostic = Diagnostic(location=test.history_location, message=f"history: {problem}")
        raise _InvalidFileError(diagnostic.format(str(file))) from error
    return entries


def _print_result(file: Path, test: RuleTest, outcome: RuleTestResult, *, verbose: bool) -> None:
    if verbose:
        write(f"{test.name}\n")
        for it in outcome.changes:
            write(f"  {_format_change(it)}\n")
    for difference in outcome.differences:
        write(_format_difference(file, test, difference), err=True)
    for problem in outcome.problems:
        diagnostic = Diagnostic(location=test.location, message=f"{test.name}: rule {problem}")
        write(f"{diagnostic.format(str(file))}\n", err=True)


def _format_difference(file: Path, test: RuleTest, difference: Difference) -> str:
    message = f"{test.name}: unexpected alerts at {_format_duration(difference.at)}"
    lines = [Diagnostic(location=difference.location, message=message).format(str(file))]
    lines += (f"  expected  {line}" for line in difference.expected)
    lines += (f"  got       {line}" for line in difference.actual)
    return "\n".join(lines) + "\n"


def _format_change(it: AlertChange) -> str:
    alert = it.alert
    about = format_subject(alert.subject.scope, alert.subject.full_name)
    state: str = alert.state
    if alert.state == "firing" and alert.ceased:
        state = "firing, condition no longer true"
    elif alert.state == "resolved" and not alert.fired:
        state = "resolved before it fired"
    return f"{_format_duration(it.at):>10}  {alert.rule} {about} {state}"


def _format_duration(nanos: int) -> str:
    return format_duration(round(nanos / _SECOND, 3))


def _text(file: Path) -> str:
    try:
        return read_rule_file(file)
    except AlertRulesError as error:
        raise _InvalidFileError(str(error)) from error
