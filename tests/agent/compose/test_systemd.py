"""Detection of a machine shutdown, with and without systemd."""

import time
from pathlib import Path

import pytest

from podstatus.agent.compose.drain import is_shutting_down


@pytest.mark.parametrize(
    ("script", "stops"),
    [
        ("echo stopping; exit 1", True),
        ("echo running", False),
        ("echo degraded; exit 1", False),
        ("echo offline >&2; exit 1", False),
        ("echo not stopping", False),
        (":", False),
    ],
)
async def test_it_goes_down_if_systemd_says_so(script: str, stops: bool) -> None:
    assert await is_shutting_down(("/bin/sh", "-c", script)) is stops


async def test_without_systemd_a_shutdown_is_not_detected(tmp_path: Path) -> None:
    assert await is_shutting_down((str(tmp_path / "systemctl"),)) is False


async def test_one_that_does_not_answer_is_not_waited_for() -> None:
    began = time.monotonic()
    assert await is_shutting_down(("/bin/sleep", "60")) is False
    assert time.monotonic() - began < 30
