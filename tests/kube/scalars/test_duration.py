"""Durations as Go parses and prints them."""

import pytest

from podstatus.kube.scalars.duration import DurationError, format_duration, parse_duration


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


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (10, "10s"),
        (59.5, "59.5s"),
        (60, "1m0s"),
        (80, "1m20s"),
        (181, "3m1s"),
        (300, "5m0s"),
        (3600, "1h0m0s"),
        (90061.25, "25h1m1.25s"),
        (0.5, "500ms"),
        (0.0015, "1.5ms"),
        (0.00002, "20µs"),
        (1e-9, "1ns"),
        (-1.5, "-1.5s"),
    ],
)
def test_a_span_reads_as_in_go(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected
