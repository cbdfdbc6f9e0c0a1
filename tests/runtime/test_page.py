"""The page about runtimes says what there is, and what it shows works."""

import re
from pathlib import Path

import pytest

from podstatus.runtime.port import Runtime
from podstatus.runtime.simulated.script import (
    CONTAINER_PREFIX,
    POD_ANNOTATION,
    WORDS,
    Script,
    parse_script,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "runtimes.md").read_text()
SCRIPTS = re.findall(r"^\| [^`|]+ \| `([^`]*=[^`]*)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("word", WORDS)
def test_the_page_has_every_word_with_values_that_can_be_read(word: str) -> None:
    row = re.search(rf"^\| `{word}` \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert row, f"{word} is not on the page"
    values = re.findall(r"`([^`]+)`", row[1])
    assert values
    for value in values:
        assert parse_script(f"{word}={value}")


def test_the_page_has_no_word_that_there_is_not() -> None:
    table = PAGE.partition("| word |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(WORDS)


def test_the_scripts_on_the_page_can_be_read() -> None:
    assert len(SCRIPTS) > 12
    for script in SCRIPTS:
        assert parse_script(script) != (Script(),)


def test_the_page_names_the_annotations_and_every_method_of_the_port() -> None:
    assert f"`{POD_ANNOTATION}`" in PAGE
    assert f"`{CONTAINER_PREFIX}<container>`" in PAGE
    methods = [name for name in vars(Runtime) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}" not in PAGE] == []


def test_links_lead_to_files_that_exist() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", PAGE)
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
