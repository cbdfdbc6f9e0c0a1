"""docs/reference/settings.md has every setting, by all its names, and no other."""

import re
from pathlib import Path

import pytest

from podstatus.agent.settings.model import SETTINGS
from podstatus.agent.settings.schema.setting import Setting

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "settings.md").read_text()
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| `--")
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.flag)
def test_a_setting_has_its_row(setting: Setting) -> None:
    (row,) = [row for row in ROWS if f"`{setting.option}`" in row[0].split(", ")]
    _, variable, field, default, help_text = row
    assert variable == f"`{setting.variable}`"
    assert field == (f"`{setting.field}`" if setting.field else "-")
    assert default == (
        setting.default_help or (f"`{setting.default}`" if setting.default else "none")
    )
    assert help_text == setting.help


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.flag)
def test_a_setting_is_in_the_section_of_its_group(setting: Setting) -> None:
    section = PAGE.partition(f"\n## {setting.group}\n")[2].partition("\n## ")[0]
    assert f"\n| `{setting.option}`" in section


def test_the_page_names_no_setting_that_is_not_there() -> None:
    options = {setting.option for setting in SETTINGS}
    switched_off = {f"--no-{setting.flag}" for setting in SETTINGS}
    assert len(ROWS) == len(SETTINGS)
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert named <= options | switched_off | {"--stop-at-eof", "--cluster-id", "--help"}
