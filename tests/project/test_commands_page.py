"""docs/reference/cli.md has the exit codes of every command; `make docs` adds their options."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from podstatus.cli.register_commands import app

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
SECTIONS = re.findall(r"^## podstatus ([\w ]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
LISTED: Any = typer.main.get_command(app)


@pytest.mark.parametrize(("command", "section"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_a_section_has_the_exit_codes_of_its(command: str, section: str) -> None:
    assert re.search(r"^Exit codes?: ", section, re.MULTILINE), command


@pytest.mark.parametrize("name", LISTED.commands)
def test_the_list_of_commands_has_the_first_line_of_their_help(name: str) -> None:
    listed = LISTED.commands[name]
    assert listed.help == listed.load().help.splitlines()[0]
