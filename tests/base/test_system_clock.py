"""The wall clock, for any value of the system clock."""

import logging
import time
from itertools import pairwise

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.base.system_time import guard_time_module, wall_clock_ns
from podstatus.kube.scalars.time import MicroTime, Time
from podstatus.runtime.process.shim.log_lines import timestamp
from podstatus.runtime.process.shim.wall_clock import wall_nanos as shim_nanos

SECOND = 1_000_000_000


def test_a_clock_of_our_time_is_shown_as_it_is() -> None:
    assert abs(wall_clock_ns() - time.time_ns()) < 60 * SECOND


@pytest.mark.parametrize(
    ("system_time", "year"),
    [
        pytest.param(-(2**62), "1970", id="1823"),
        pytest.param(-1, "1970", id="the last moment of 1969"),
        pytest.param(0, "1970", id="1970"),
        pytest.param(4_102_444_800 * SECOND, "2100", id="2100"),
        pytest.param(8_300_000_000 * SECOND, "2230", id="2233"),
        pytest.param(2**63 - 1, "2230", id="2262"),
        pytest.param(None, "2230", id="9998"),
    ],
)
def test_any_clock_shows_a_time_that_fits_everywhere(
    system_time: int | None, year: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_ns() -> int:
        if system_time is None:  # what Python does after 2262
            raise OverflowError("timestamp too large to convert to C _PyTime_t")
        return system_time

    monkeypatch.setattr(time, "time_ns", time_ns)
    clock = SystemClock()
    seen = [clock.now() for _ in range(3)]
    assert all(before <= after for before, after in pairwise(seen))
    assert 0 <= seen[0] < 2**63 - 366 * 86_400 * SECOND
    for text in (Time.from_unix_nanos(seen[0]).wire, MicroTime.from_unix_nanos(seen[0]).wire):
        assert text is not None
        assert text[:4] in (year, str(int(year) + 1))


def test_a_clock_beyond_its_range_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: -(2**62))
    clock = SystemClock()
    first, passed = clock.now(), clock.monotonic()
    while clock.monotonic() == passed:
        pass
    assert clock.now() > first


def test_logging_and_others_see_a_time_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow() -> int:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")

    monkeypatch.setattr(time, "time_ns", overflow)
    monkeypatch.setattr(time, "time", overflow)
    guard_time_module()
    assert time.gmtime(time.time()).tm_year in (2230, 2231)
    assert abs(wall_clock_ns() - time.time_ns()) < 60 * SECOND
    record = logging.LogRecord("n", logging.INFO, "p", 1, "m", (), None)
    assert logging.Formatter("%(asctime)s").format(record).startswith("223")


@pytest.mark.parametrize("system_time", [-(2**62), 0, 4_102_444_800 * SECOND, 2**63 - 1, None])
def test_a_shim_has_the_same_time(system_time: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_ns() -> int:
        if system_time is None:
            raise OverflowError("timestamp too large to convert to C _PyTime_t")
        return system_time

    monkeypatch.setattr(time, "time_ns", time_ns)
    assert abs(shim_nanos() - wall_clock_ns()) < 366 * 86_400 * SECOND
    assert timestamp(shim_nanos()).endswith(b"Z")
