"""Forecast of a full disk."""

import pytest

from podstatus.node.decide.readings import DiskReading
from podstatus.node.machine.usage import DiskForecast

SECOND = 1_000_000_000
GIB = 2**30


def after(minutes: int, *, a_minute: float, every: int = 10) -> DiskForecast:
    """A half-full disk of 100 GiB that grows by this many bytes per minute."""
    forecast = DiskForecast()
    for seconds in range(0, minutes * 60 + 1, every):
        used = int(50 * GIB + a_minute * seconds / 60)
        forecast.add_sample(disk(used), seconds * SECOND)
    return forecast


def disk(used: int) -> DiskReading:
    return DiskReading(
        total_bytes=100 * GIB,
        used_bytes=used,
        available_bytes=100 * GIB - used,
        inodes=0,
        inodes_free=0,
    )


def test_even_growth_is_forecast() -> None:
    forecast = after(60, a_minute=GIB / 6)  # 10 GiB in an hour, 40 are left
    assert forecast.full_in_seconds == pytest.approx(4 * 3600, rel=0.01)


@pytest.mark.parametrize("a_minute", [0, -GIB / 60])
def test_what_does_not_fill_is_never_full(a_minute: float) -> None:
    assert after(60, a_minute=a_minute).full_in_seconds is None


def test_a_few_minutes_tell_nothing() -> None:
    assert after(4, a_minute=GIB).full_in_seconds is None
    assert DiskForecast().full_in_seconds is None


def test_what_was_before_the_last_hour_does_not_count() -> None:
    forecast = after(10, a_minute=GIB)
    for minute in range(11, 80):
        forecast.add_sample(disk(60 * GIB), minute * 60 * SECOND)
    assert forecast.full_in_seconds is None
