"""The glossary names what exists, and each word once."""

import re
from pathlib import Path

import pytest

from tests.support.dotted_names import dotted_names, resolve

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "glossary.md"
TEXT = PAGE.read_text()
ROWS = [
    line for line in re.findall(r"^\| .*", TEXT, re.MULTILINE) if not line.startswith("| word |")
]


@pytest.mark.parametrize("name", sorted(set(dotted_names(TEXT))))
def test_every_name_of_ours_in_the_glossary_exists(name: str) -> None:
    assert resolve(name) is not None


def test_every_row_has_a_word_our_name_and_one_sentence() -> None:
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS]
    assert [row for row in cells if len(row) != 3 or not all(row) or "`" not in row[1]] == []


def test_each_word_is_explained_once() -> None:
    words = [row.split("|")[1].strip() for row in ROWS]
    assert sorted(set(words)) == sorted(words)


def test_links_of_the_glossary_lead_to_files_that_exist() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", TEXT)
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_the_glossary_uses_the_vocabulary_of_the_style_guide() -> None:
    banned = r"\b(told|whoever|whom|who|somebody|nobody|anew|rooms?)\b"
    assert re.findall(banned, TEXT, re.IGNORECASE) == []
