"""Rotation of a log that another process writes."""

import asyncio
import os
from pathlib import Path

import pytest

from podstatus.agent.daemon.apiserver_process import rotate_log, run_log_rotation
from podstatus.base.system_clock import SystemClock


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


def writer_of(log: Path) -> int:
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def test_a_long_log_is_put_aside_and_its_writer_goes_on(log: Path) -> None:
    writer = writer_of(log)
    os.write(writer, b"first\n" + b"x" * 100 + b"last\n")
    assert rotate_log(log, 50)
    os.write(writer, b"more\n")
    os.close(writer)
    aside = log.with_name("server.log.1")
    assert log.read_bytes() == b"more\n"
    assert aside.read_bytes() == b"x" * 45 + b"last\n"
    assert aside.stat().st_mode & 0o777 == 0o600


def test_a_short_log_stays_as_it_is(log: Path) -> None:
    log.write_bytes(b"x" * 50)
    assert not rotate_log(log, 50)
    assert not rotate_log(log.with_name("none"), 50)
    assert list(log.parent.iterdir()) == [log]


def test_no_link_is_followed(log: Path) -> None:
    other = log.with_name("other")
    other.write_bytes(b"x" * 100)
    log.symlink_to(other)
    assert not rotate_log(log, 50)
    assert other.stat().st_size == 100


def test_a_log_that_cannot_be_put_aside_is_cut_off(log: Path) -> None:
    log.write_bytes(b"x" * 100)
    log.with_name("server.log.1.tmp").mkdir()
    assert rotate_log(log, 50)
    assert log.stat().st_size == 0


class WritingClock(SystemClock):
    """While one waits for it, the log grows; three times."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.sizes: list[int] = []

    async def wait(self, seconds: float) -> None:
        self._grow()

    def _grow(self) -> None:
        if len(self.sizes) == 3:
            raise asyncio.CancelledError
        self.sizes.append(self._log.stat().st_size)
        self._log.write_bytes(b"x" * 100)


def test_it_is_looked_at_while_its_writer_runs(log: Path) -> None:
    log.touch()
    clock = WritingClock(log)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_log_rotation(log, clock, 50))
    assert clock.sizes == [0, 0, 0]
