"""Durations as Go prints them."""

import pytest

from podstatus.kube.scalars.go_text import go_duration


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
    assert go_duration(seconds) == expected
