"""`podstatus doctor`: check whether a node can run on this machine."""

import os

import typer

from podstatus.cli.setting_options import Flags, with_settings


@with_settings
def doctor(flags: Flags) -> None:
    """Check whether a node can run on this machine.

    Accepts the settings of podstatus run, as flags and environment variables.
    """
    from podstatus.agent.settings.load import SettingsError, load_settings
    from podstatus.cli.doctor_checks import HINT, PROBLEM, Finding, findings_table, has_problems
    from podstatus.cli.doctor_measurements import run_checks
    from podstatus.cli.styled_output import print_table

    try:
        loaded = load_settings(flags, os.environ)
        findings = [Finding("settings", HINT, warning) for warning in loaded.warnings]
        findings += run_checks(loaded.settings)
    except SettingsError as error:
        findings = [Finding("settings", PROBLEM, line) for line in error.errors]
    print_table(findings_table(findings))
    if has_problems(findings):
        raise typer.Exit(1)
