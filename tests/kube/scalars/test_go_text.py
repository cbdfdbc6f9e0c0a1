import pytest

from podstatus.kube.scalars.go_text import go_quoted, truncate_bytes, valid_text

LOST = "\N{REPLACEMENT CHARACTER}"


def from_bytes(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("grün €", "grün €"),
        (from_bytes(b"half \xe2\x82"), f"half {LOST}{LOST}"),
        (from_bytes(b"\xff and \xc3\xa9"), f"{LOST} and é"),
        ("lone \ud800", f"lone {LOST}"),
    ],
)
def test_each_byte_that_is_no_character_becomes_one_replacement(text: str, expected: str) -> None:
    assert valid_text(text) == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", 3, b"abc"),
        ("abcd", 3, b"abc"),
        ("abc", 0, b""),
        ("€€", 6, "€€".encode()),
        ("€€", 5, b"\xe2\x82\xac\xe2\x82"),
        ("€€", 4, b"\xe2\x82\xac\xe2"),
        ("€€", 3, "€".encode()),
        ("a€", 3, b"a\xe2\x82"),
        (from_bytes(b"\xff\xfe\xfd"), 2, b"\xff\xfe"),
    ],
)
def test_text_is_cut_by_bytes_even_inside_a_character(
    text: str, limit: int, expected: bytes
) -> None:
    assert truncate_bytes(text, limit) == from_bytes(expected)


@pytest.mark.parametrize("text", ["short", "€" * 10, from_bytes(b"\xff" * 10)])
def test_text_within_the_limit_stays_as_it_is(text: str) -> None:
    assert truncate_bytes(text, 100) is text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", '"plain"'),
        ('say "hi" \\', r'"say \"hi\" \\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("grün €", '"grün €"'),
        ("no\xa0break", r'"no\u00a0break"'),
        ("\u200b\ufeff", r'"\u200b\ufeff"'),
        ("\U000e0001", r'"\U000e0001"'),
        (from_bytes(b"\xe2\x82"), r'"\xe2\x82"'),
        (LOST, f'"{LOST}"'),
        ("<&>'", '"<&>\'"'),
    ],
)
def test_quoting_is_that_of_go(text: str, expected: str) -> None:
    assert go_quoted(text) == expected
