"""Durations as Go parses them."""

import pytest

from podstatus.kube.scalars.duration import DurationError, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("1m30s", 90),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("100ms", 0.1),
        ("2us", 2e-6),
        ("2µs", 2e-6),
        ("2\N{GREEK SMALL LETTER MU}s", 2e-6),
        ("7ns", 7e-9),
        ("0", 0),
        ("-0", 0),
        ("-5s", -5),
        ("+5s", 5),
        ("1s1h", 3601),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "s",
        "1d",
        "1 s",
        "1s ",
        "--1s",
        "1e3s",
        ".s",
        "\N{ARABIC-INDIC DIGIT ONE}s",
        "300000000h",
    ],
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)
