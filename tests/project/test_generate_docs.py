"""The generated tables are those of the code, and a page that misses one is found."""

import re
from typing import Any

import pytest
from tools import generate_docs
from tools.generate_docs import DOCS, PageError, add_cli_sections, cli_commands, fill, table

from podstatus.agent.settings.model import SETTINGS

PAGE = "# Commands\n\n## podstatus get\n\nGets.\n\nExit codes: 0.\n"


def test_the_pages_are_as_make_docs_writes_them() -> None:
    pages = generate_docs.generate(DOCS)
    assert [path for path, text in pages.items() if path.read_text() != text] == []


def test_a_region_is_replaced_and_the_rest_stays() -> None:
    page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n"
    assert fill("p.md", page, {"x": "new"}) == page.replace("old", "new")


@pytest.mark.parametrize("regions", [{}, {"x": "1", "y": "2"}])
def test_a_page_has_all_regions_and_no_other(regions: dict[str, str]) -> None:
    with pytest.raises(PageError, match=r"p\.md"):
        fill("p.md", "<!-- generated: x -->\n<!-- end -->\n", regions)


def test_cells_are_escaped() -> None:
    assert table("| a | b |", [["x|y", ""]]) == "| a | b |\n|---|---|\n| x\\|y | |"


@pytest.fixture
def command() -> Any:
    return cli_commands()["get"]


def test_a_section_without_a_table_gets_one_before_its_exit_codes(command: Any) -> None:
    page = add_cli_sections(PAGE, {"get": command}, {"options of get": "| t |"})
    region = "<!-- generated: options of get -->\n<!-- end -->\n\n"
    assert page == PAGE.replace("Exit codes", f"{region}Exit codes")


def test_a_new_command_gets_a_section(command: Any) -> None:
    commands = {"fetch": command, "get": command}
    page = add_cli_sections(PAGE, commands, {"options of fetch": "| t |"})
    assert re.findall("^## podstatus (.*)$", page, re.MULTILINE) == ["fetch", "get"]
    assert "<!-- generated: options of fetch -->" in page


def test_a_section_of_a_command_that_is_gone_is_an_error() -> None:
    with pytest.raises(PageError, match="get"):
        add_cli_sections(PAGE, {}, {})


def test_the_text_about_settings_names_no_flag_that_is_not_there() -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    flags = {it for setting in SETTINGS for it in (setting.option, f"--no-{setting.flag}")}
    other = {"--stop-at-eof", "--cluster-id", "--help"}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= flags | other
