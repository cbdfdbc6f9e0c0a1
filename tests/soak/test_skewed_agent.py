"""The agent of a campaign has a wall clock that jumps, and a monotonic clock that does not."""

import time
from pathlib import Path

import pytest

from podstatus.base.system_clock import SystemClock
from tests.support.processes.skewed_agent import set_offset, skew_time_module

HOUR = 3600 * 10**9
MINUTE = 60 * 10**9
"""Of a busy machine, between two readings."""


@pytest.fixture
def offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a process that is skewed until the end of the test."""
    for name in ("time", "time_ns"):
        monkeypatch.setattr(time, name, getattr(time, name))
    file = tmp_path / "clock"
    set_offset(file, 0)
    skew_time_module(file)
    return file


@pytest.mark.parametrize("direction", [1, -1])
def test_the_wall_clock_jumps_there_and_back(offset: Path, direction: int) -> None:
    clock = SystemClock()
    before, monotonic = clock.now(), clock.monotonic()
    set_offset(offset, direction * 3600)
    assert abs(clock.now() - before - direction * HOUR) < MINUTE
    assert abs(time.time() * 10**9 - before - direction * HOUR) < MINUTE
    assert 0 <= clock.monotonic() - monotonic < MINUTE
    set_offset(offset, 0)
    assert 0 <= clock.now() - before < MINUTE
