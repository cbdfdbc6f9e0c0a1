"""`podstatus alerts test`: rules are played over what is scripted or recorded."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from podstatus.agent.compose.alert_rules import AlertRulesError, read_rule_file
from podstatus.alerts.defaults import default_rules, default_rules_text, effective_defaults
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.alerts.evaluator.process import EvaluatorProcess
from podstatus.alerts.model import Diagnostic, sort_diagnostics
from podstatus.alerts.rule_tests.cases import (
    RuleTest,
    RuleTestFile,
    format_subject,
    read_rule_tests,
    subject_name,
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
from podstatus.kube.scalars.go_text import go_duration
from podstatus.observe.history.store import HistoryEntry, HistoryError, open_history_reader

_DEFAULT_RULES = "default"
_HISTORY_FILE = "history.db"
_PAGE_SIZE = 10_000
_SECOND = 1_000_000_000

FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files of tests.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show every change of an alert, with its time.")
]


class _InvalidFileError(Exception):
    """A file of tests cannot be used; a line for each mistake."""


def test_rules(files: FilesArgument, *, verbose: VerboseOption = False) -> None:  # noqa: PT028 - no pytest
    """Play alert rules over scripted or recorded pods: are the alerts those that are expected?"""
    with EvaluatorProcess() as evaluator:
        right = [_test(file, evaluator, verbose=verbose) for file in files]
    if not all(right):
        raise typer.Exit(1)


def defaults() -> None:
    """Print the default rules: what an agent asks unless files of rules change it."""
    write(default_rules_text())


def _test(file: Path, evaluator: EvaluatorProcess, *, verbose: bool) -> bool:
    """Whether all is as it is expected to be."""
    try:
        read = _read(file)
        rules = _rules(file, read, evaluator)
        evaluator.load(it.rule for it in rules if not it.problem)
        failed = [
            test.name
            for test in read.tests
            if not _run_test(file, test, rules, evaluator, verbose=verbose)
        ]
    except (_InvalidFileError, EvaluatorError) as error:
        write(f"{error}\n", err=True)
        return False
    count = len(read.tests)
    tests = f"{count} test{'' if count == 1 else 's'}"
    told = f"{len(failed)} of {tests} failed" if failed else f"{tests}, all as expected"
    write(f"{file}: {told}\n")
    return not failed


def _read(file: Path) -> RuleTestFile:
    read, mistakes = read_rule_tests(_text(file))
    if mistakes:
        raise _InvalidFileError("\n".join(mistake.format(str(file)) for mistake in mistakes))
    return read


def _rules(file: Path, read: RuleTestFile, evaluator: EvaluatorProcess) -> tuple[LoadedRule, ...]:
    """Those that the tests are about."""
    loaded: list[LoadedRules] = []
    wrong: list[str] = []
    for name in read.rules:
        if name != _DEFAULT_RULES:
            path = file.parent / name
            loaded.append(load_rules(_text(path), evaluator))
            wrong += (mistake.format(str(path)) for mistake in loaded[-1].errors)
    theirs = [rule for each in loaded for rule in each.rules]
    if _DEFAULT_RULES in read.rules or not read.rules:
        shipped = default_rules(evaluator)
        theirs = [*effective_defaults(shipped, [each.rule_set for each in loaded]), *theirs]
    known = {loaded_rule.rule.name for loaded_rule in theirs}
    unknown = sort_diagnostics(it for test in read.tests for it in _unknown_rules(test, known))
    wrong += (mistake.format(str(file)) for mistake in unknown)
    if wrong:
        raise _InvalidFileError("\n".join(wrong))
    return tuple(theirs)


def _unknown_rules(test: RuleTest, rule_names: Collection[str]) -> Iterator[Diagnostic]:
    """Rules that a test names, and that there are not."""
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
    evaluator: EvaluatorProcess,
    *,
    verbose: bool,
) -> bool:
    if test.history:
        moments = _read_history(file, test)
        outcome = run_rule_test(test, rules, evaluator, partial(HistoryDriver, entries=moments))
    else:
        outcome = run_rule_test(test, rules, evaluator, ScriptedDriver)
    _print_result(file, test, outcome, verbose=verbose)
    return not outcome.differences and not outcome.problems


def _read_history(file: Path, test: RuleTest) -> list[HistoryEntry]:
    """All of a history: its file, or that of a root-dir."""
    path = file.parent / test.history
    path = path / _HISTORY_FILE if path.is_dir() else path
    found: list[HistoryEntry] = []
    try:
        with open_history_reader(path) as history:
            while piece := history.entries_after(found[-1].id if found else 0, limit=_PAGE_SIZE):
                found += piece
    except HistoryError as error:
        problem = str(error) if path.exists() else f"there is no {path}"
        mistake = Diagnostic(location=test.history_location, message=f"history: {problem}")
        raise _InvalidFileError(mistake.format(str(file))) from error
    return found


def _print_result(file: Path, test: RuleTest, outcome: RuleTestResult, *, verbose: bool) -> None:
    if verbose:
        write(f"{test.name}\n")
        for it in outcome.changes:
            write(f"  {_format_change(it)}\n")
    for difference in outcome.differences:
        write(_format_difference(file, test, difference), err=True)
    for problem in outcome.problems:
        place = Diagnostic(location=test.location, message=f"{test.name}: rule {problem}")
        write(f"{place.format(str(file))}\n", err=True)


def _format_difference(file: Path, test: RuleTest, difference: Difference) -> str:
    message = f"{test.name}: at {_format_duration(difference.at)} it is not as expected"
    lines = [Diagnostic(location=difference.location, message=message).format(str(file))]
    lines += (f"  expected  {line}" for line in difference.expected)
    lines += (f"  got       {line}" for line in difference.actual)
    return "\n".join(lines) + "\n"


def _format_change(it: AlertChange) -> str:
    alert = it.alert
    about = format_subject(alert.subject.scope, subject_name(alert))
    state: str = alert.state
    if alert.state == "firing" and alert.ceased:
        state = "firing, though it has ceased to hold"
    elif alert.state == "resolved" and not alert.fired:
        state = "over before it fired"
    return f"{_format_duration(it.at):>10}  {alert.rule} {about} {state}"


def _format_duration(nanos: int) -> str:
    return go_duration(round(nanos / _SECOND, 3))


def _text(file: Path) -> str:
    try:
        return read_rule_file(file)
    except AlertRulesError as error:
        raise _InvalidFileError(str(error)) from error
