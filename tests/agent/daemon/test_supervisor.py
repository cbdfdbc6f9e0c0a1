"""The supervisor, with a small program that dies."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.agent.daemon.supervisor import CHECK_SECONDS, Supervisor
from podstatus.base.backoff import Backoff


class CountingClock:
    """A clock that skips waits and advances by a second with each reading.

    Only the wait between two checks of the agent's health is a real one.
    """

    def __init__(self) -> None:
        self.nanos = 1_800_000_000_000_000_000
        self.offset = 0
        """Of the wall clock, in nanoseconds."""
        self.waits: list[float] = []

    def now(self) -> int:
        return self.monotonic() + self.offset

    def monotonic(self) -> int:
        self.nanos += 1_000_000_000
        return self.nanos

    async def wait(self, seconds: float) -> None:
        if seconds == CHECK_SECONDS:
            await asyncio.sleep(seconds)
            return
        self.waits.append(seconds)
        self.nanos += round(seconds * 1e9)


class Scene:
    """A program that runs one line each time, the last one from then on."""

    def __init__(self, tmp_path: Path, *lines: str) -> None:
        self.root = tmp_path
        self.clock = CountingClock()
        self.said = b""
        (tmp_path / "lines").write_text("\n".join(lines))
        program = (
            "import os, pathlib, signal, sys, time\n"
            f"path = pathlib.Path({str(tmp_path / 'lines')!r})\n"
            "lines = path.read_text().split('\\n')\n"
            "path.write_text('\\n'.join(lines[1:] or lines))\n"
            "exec(lines[0])\n"
        )
        self.supervisor = Supervisor(
            [sys.executable, "-c", program],
            tmp_path,
            clock=self.clock,
            write_stderr=self.hear,
            systemd=SystemdService.take({}, self.clock),
            backoff=Backoff(initial_seconds=1, max_seconds=300, jitter=0),
        )

    def hear(self, text: bytes) -> None:
        self.said += text

    def run(self) -> int:
        async def within() -> int:
            async with asyncio.timeout(60):
                return await self.supervisor.run()

        return asyncio.run(within())

    def records(self) -> list[dict[str, object]]:
        path = self.root / "restarts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("code", [0, 2])
def test_one_that_is_done_or_cannot_be_helped_is_let_go(tmp_path: Path, code: int) -> None:
    scene = Scene(tmp_path, f"sys.exit({code})")
    assert scene.run() == code
    assert scene.records() == []


def test_one_that_dies_is_started_again_later_and_later(tmp_path: Path) -> None:
    scene = Scene(tmp_path, *["sys.exit(3)"] * 3, "sys.exit(0)")
    assert scene.run() == 0
    assert scene.clock.waits == [1, 2, 4]
    assert [record["exit_code"] for record in scene.records()] == [3, 3, 3]


def test_the_exit_is_recorded_and_passed_to_the_next_agent(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path,
        "sys.exit('first line\\nlast line')",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "sys.stderr.write(os.environ['PODSTATUS_RESTARTED'])",
    )
    assert scene.run() == 0
    exited, killed = scene.records()
    assert exited["last_lines"] == ["first line", "last line"]
    assert exited["exit_code"] == 1
    assert str(exited["at"]).startswith("2027-01-15T08:00:")
    assert killed["signal"] == "SIGKILL"
    assert "exit_code" not in killed or killed["exit_code"] is None
    output = scene.said.decode()
    assert "podstatus: the agent exited with 1 at 2027-" in output
    assert ": last line; restarting it" in output
    assert "the agent was killed by SIGKILL at" in output.splitlines()[-1]


def test_records_are_bounded_in_number_and_size(tmp_path: Path) -> None:
    (tmp_path / "restarts.jsonl").write_text('{"old": 1}\n' * 500)
    noise = "sys.stderr.write('x' * 2000 + '\\n' + 'y\\n' * 50); sys.exit(1)"
    scene = Scene(tmp_path, noise, "sys.exit(0)")
    scene.run()
    records = scene.records()
    assert len(records) == 100
    assert records[-1]["last_lines"] == ["y"] * 20
    assert (tmp_path / "restarts.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_signal_is_passed_on_and_nothing_is_started_any_more(tmp_path: Path) -> None:
    class Stopped(Scene):
        def hear(self, text: bytes) -> None:
            super().hear(text)
            if b"up" in text:
                self.supervisor.stop(signal.SIGTERM)

    scene = Stopped(tmp_path, "sys.stderr.write('up\\n'); sys.stderr.flush(); time.sleep(60)")
    assert scene.run() == 0
    assert scene.records() == []


@pytest.mark.parametrize("rounds", range(6))
async def test_a_signal_counts_at_every_moment_of_the_start(tmp_path: Path, rounds: int) -> None:
    scene = Scene(tmp_path, "time.sleep(600)")
    running = asyncio.create_task(scene.supervisor.run())
    for _ in range(rounds):
        await asyncio.sleep(0)
    scene.supervisor.stop(signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await running == 0
    assert scene.records() == []


class HourLater(Scene):
    """An hour passes, or the wall clock is set by one, when the program says so."""

    def hear(self, text: bytes) -> None:
        super().hear(text)
        if b"an hour passes" in text:
            self.clock.nanos += 3600 * 10**9
        if b"the clock is set" in text:
            self.clock.offset += 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "waits"), [("an hour passes", [1, 2, 1]), ("the clock is set", [1, 2, 4])]
)
def test_one_that_lived_long_counts_as_well_again(
    tmp_path: Path, text: str, waits: list[float]
) -> None:
    third = f"sys.exit({text!r})"
    scene = HourLater(tmp_path, *["sys.exit(1)"] * 2, third, "sys.exit(0)")
    scene.run()
    assert scene.clock.waits == waits


async def test_one_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "program"
    said: list[bytes] = []

    def hear(text: bytes) -> None:
        said.append(text)
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o700)

    clock = CountingClock()
    supervisor = Supervisor(
        [str(program)],
        tmp_path,
        clock=clock,
        write_stderr=hear,
        systemd=SystemdService.take({}, clock),
    )
    assert await supervisor.run() == 0
    assert len(said) == 1
    assert b"cannot start it: [Errno 2]" in said[0]
