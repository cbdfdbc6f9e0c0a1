"""Control characters are replaced by a visible form."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.control_chars import ControlCharEscaper, escape_control_chars

SEEN = "plain text\twith a tab\nand a line, ü, 日本, 👩\N{ZERO WIDTH JOINER}🚀\n"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\x1b[31mred\x1b[0m", "^[[31mred^[[0m"),
        ("\x1b]0;title\x07", "^[]0;title^G"),
        ("\x1b]52;c;cm0gLXJmIC8K\x1b\\", "^[]52;c;cm0gLXJmIC8K^[\\"),
        ("\x1bP$q\x1b\\", "^[P$q^[\\"),
        ("safe\rEVIL", "safe^MEVIL"),
        ("a\b\b\0\x7f", "a^H^H^@^?"),
        ("\x9b31m \x9d0;t\x9c \x85", "\\x9b31m \\x9d0;t\\x9c \\x85"),
        ("user\u202eexe.gpj\u2066", "user\\u202eexe.gpj\\u2066"),
        ("a\u2028b\ufeff\u200b", "a\\u2028b\\ufeff\\u200b"),
        ("\udc9b", "\\udc9b"),
        ("\U000e0041", "\\U000e0041"),
        (SEEN, SEEN),
    ],
)
def test_what_does_something_is_shown_by_its_name(text: str, escaped: str) -> None:
    assert escape_control_chars(text) == escaped


@given(st.text())
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    left = {
        c for c in escape_control_chars(text) if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")
    }
    assert left <= {"\t", "\n"}
    assert escape_control_chars(escape_control_chars(text)) == escape_control_chars(text)


def feed(data: bytes, cuts: list[int]) -> str:
    escaper = ControlCharEscaper()
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    pieces = [data[a:b] for a, b in pairwise(places)]
    return "".join(map(escaper.feed, pieces)) + escaper.flush()


@given(st.binary(), st.lists(st.integers(min_value=0, max_value=1000)))
def test_bytes_may_be_cut_anywhere(data: bytes, cuts: list[int]) -> None:
    assert feed(data, cuts) == escape_control_chars(data.decode("utf-8", "backslashreplace"))


@pytest.mark.parametrize(
    ("data", "escaped"),
    [
        (b"\x9b31m", "\\x9b31m"),
        (b"caf\xc3\xa9 \xc2\x9b \xff\xfe", "caf\u00e9 \\x9b \\xff\\xfe"),
        (b"\xc0\x9b", "\\xc0\\x9b"),
        ("日本".encode()[:-1], "日\\xe6\\x9c"),
    ],
)
def test_what_is_no_utf_8_is_shown_byte_by_byte(data: bytes, escaped: str) -> None:
    assert feed(data, list(range(len(data)))) == escaped
