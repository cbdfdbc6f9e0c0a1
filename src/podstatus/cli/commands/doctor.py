"""`podstatus doctor`: check whether a node can run on this machine."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import typer

from podstatus.agent.settings.model import SETTINGS
from podstatus.cli.errors import report_errors
from podstatus.cli.setting_options import Flags, with_settings

_SETTINGS = [
    msgspec.structs.replace(
        setting, default_help=f"./.podstatus if it contains a node, else {setting.default_help}"
    )
    if setting.name == "root_dir"
    else setting
    for setting in SETTINGS
]


@partial(with_settings, settings=_SETTINGS)
def doctor(flags: Flags) -> None:
    """Check whether a node can run on this machine.

    Accepts the settings of podstatus run, as flags and environment variables.
    """
    from podstatus.agent.settings.default_root_dir import default_root_dir
    from podstatus.agent.settings.load import SettingsError, load_settings
    from podstatus.cli.doctor_checks import HINT, PROBLEM, Finding, findings_table, has_problems
    from podstatus.cli.doctor_measurements import run_checks
    from podstatus.cli.styled_output import print_table

    try:
        loaded = load_settings(flags, os.environ)
        findings = [Finding("settings", HINT, warning) for warning in loaded.warnings]
        settings = loaded.settings
        if flags["root_dir"] is None and settings.root_dir == default_root_dir(os.environ):
            settings = replace(settings, root_dir=_used_root_dir())
        findings += run_checks(settings)
    except SettingsError as error:
        findings = [Finding("settings", PROBLEM, line) for line in error.errors]
    print_table(findings_table(findings))
    if has_problems(findings):
        raise typer.Exit(1)


def _used_root_dir() -> Path:
    """The root directory that other commands use if none is named."""
    from podstatus.cli.client.running_agent import find_root_dir

    with report_errors():
        return find_root_dir(None, os.environ, stopped=True)
