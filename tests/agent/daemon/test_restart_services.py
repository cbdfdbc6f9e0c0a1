"""A service with an unexpected error is logged and restarted."""

import asyncio
import logging

import pytest

from podstatus.agent.compose.agent import run_with_restarts
from podstatus.testing.clock import FakeClock


class Faulty:
    """Fails so often, then runs."""

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.runs = 0

    async def run(self) -> None:
        self.runs += 1
        if self.runs <= self._failures:
            raise LookupError(f"failure {self.runs}")
        await asyncio.Event().wait()


async def test_a_service_that_fails_is_logged_and_run_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        clock, service = FakeClock(), Faulty(failures=3)
        running = asyncio.create_task(
            run_with_restarts("lease", service.run, clock, random=lambda: 0.0)
        )
        await clock.advance(0.5)
        assert service.runs == 1
        await clock.advance(100)
        assert service.runs == 4
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert "LookupError: failure 3" in caplog.text


async def test_waits_grow_and_are_bounded() -> None:
    clock, service = FakeClock(), Faulty(failures=10_000)
    running = asyncio.create_task(run_with_restarts("x", service.run, clock, random=lambda: 0.0))
    await clock.advance(3600)
    assert 60 <= service.runs < 200
    running.cancel()


async def test_a_service_that_returns_is_not_run_again() -> None:
    async def play() -> int:
        runs = 0

        async def run() -> None:
            nonlocal runs
            runs += 1

        await run_with_restarts("x", run, FakeClock())
        return runs

    assert await play() == 1
