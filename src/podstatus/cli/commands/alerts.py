"""`podstatus alerts`: check and test alert rule files without an agent."""

from pathlib import Path
from typing import Annotated

import typer

from podstatus.cli.commands.usage_line import PlainUsageCommand

alerts = typer.Typer(
    name="alerts",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Check and test alert rules.",
)
RuleFilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Alert rule files, or - for standard input.")
]
TestFilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Alert rule test files.")
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every state change of every alert.")
]


@alerts.callback()
def _alerts() -> None:
    """Keep `alerts` a group of commands, however many it has."""


@alerts.command(cls=PlainUsageCommand)
def check(files: RuleFilesArgument) -> None:
    """Validate alert rule files.

    Prints every error with its line and column; if there are no errors, prints the rules.
    """
    from podstatus.cli.alerts_check import check_rules

    if not check_rules(files):
        raise typer.Exit(1)


@alerts.command("test", cls=PlainUsageCommand)
def run_rule_tests(files: TestFilesArgument, *, verbose: VerboseOption = False) -> None:
    """Run alert rules against pod statuses from test files.

    Compares the resulting alerts with the expected alerts and prints the differences.
    """
    from podstatus.cli.alerts_rule_tests import test_rules

    if not test_rules(files, verbose=verbose):
        raise typer.Exit(1)


@alerts.command(cls=PlainUsageCommand)
def defaults() -> None:
    """Print the default alert rules."""
    from podstatus.alerts.defaults import default_rules_text
    from podstatus.cli.terminal import write

    write(default_rules_text())
