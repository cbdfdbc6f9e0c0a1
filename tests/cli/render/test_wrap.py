"""Wrapping of long text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from podstatus.cli.render.wrap import wrap_text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a few\n  word", ["a few word"]),
        ("more words than fit", ["more words", "than fit"]),
        ('{"code":500,"why":"no"} x', ['{"code":', '500,"why":', '"no"} x']),
        ("see /var/log/pods/a", ["see /var/", "log/pods/a"]),
        ("in abcdefghijklm", ["in", "abcdefghij", "klm"]),
        ("in abc-defghijk", ["in abc-", "defghijk"]),
        ("漢字漢字 漢字漢", ["漢字漢字", "漢字漢"]),
        ("a漢字漢字漢字", ["a漢字漢字", "漢字"]),
    ],
)
def test_words_are_cut_only_where_a_reader_would(text: str, lines: list[str]) -> None:
    assert wrap_text(text, 10) == lines


@given(st.text(alphabet="ab漢{,:-. \n", max_size=60), st.integers(2, 20))
def test_nothing_is_lost_and_no_line_is_too_long(text: str, width: int) -> None:
    lines = wrap_text(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(0 < cell_len(line) <= width for line in lines)
