"""docs/reference/cli.md has every command, with its options and arguments, and no other."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from podstatus.agent.settings.model import SETTINGS
from podstatus.cli.register_commands import LazyCommand, app

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()


def commands(group: Any, before: str = "") -> dict[str, Any]:
    """All commands by their names, those of groups with the name of the group."""
    found: dict[str, Any] = {}
    for name, listed in group.commands.items():
        command = listed.load() if isinstance(listed, LazyCommand) else listed
        inside = hasattr(command, "commands")
        found |= commands(command, f"{name} ") if inside else {f"{before}{name}": command}
    return found


LISTED: Any = typer.main.get_command(app)
COMMANDS = commands(LISTED)
_OF_SETTINGS = {setting.option for setting in SETTINGS}


def section(name: str) -> str:
    return PAGE.partition(f"\n## podstatus {name}\n")[2].partition("\n## ")[0]


def row(parameter: Any) -> str:
    """What the page says of an option, or of an argument."""
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar}`"
    else:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        names += f" {parameter.metavar}" if parameter.metavar else ""
    cell = names.replace("|", r"\|")
    return f"| {cell} | {parameter.help} |"


def rows(name: str) -> list[str]:
    """What is said of all that a command takes; settings have a page of their own."""
    taken = COMMANDS[name].params
    return [
        row(parameter)
        for parameter in taken
        if not getattr(parameter, "hidden", False)
        and not (name in ("run", "doctor") and parameter.opts[0] in _OF_SETTINGS)
    ]


def test_every_command_has_a_section_and_nothing_else_has() -> None:
    assert re.findall(r"^## podstatus ([\w ]+)$", PAGE, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_has_what_the_command_takes(name: str) -> None:
    there = [line for line in section(name).splitlines() if line.startswith("| `")]
    assert there == rows(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_tells_the_exit_codes(name: str) -> None:
    assert re.search(r"^Exit codes?: ", section(name), re.MULTILINE)


@pytest.mark.parametrize("name", LISTED.commands)
def test_the_list_of_commands_has_the_first_line_of_their_help(name: str) -> None:
    listed = LISTED.commands[name]
    assert listed.help == listed.load().help.splitlines()[0]
