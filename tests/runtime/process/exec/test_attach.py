import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.runtime.process.exec.start import attach_to
from podstatus.runtime.process.records.models import StartRecord
from podstatus.runtime.process.state.process_identity import read_identity
from podstatus.runtime.streams import (
    OutputStream,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
    TerminalSize,
)
from tests.runtime.process.a_log import START, ALog, a_launch, an_exit

MONITOR = """
import signal, sys
signal.signal(signal.SIGWINCH, lambda *_: open(sys.argv[1], "w").close())
print("ready", flush=True)
sys.stdin.read()
"""


class AContainer:
    """A monitor that does nothing; the test writes the log and reads the input instead."""

    def __init__(self, folder: Path) -> None:
        self.log = ALog(folder)
        self.resized = folder / "resized"
        self._monitor = subprocess.Popen(
            [sys.executable, "-c", MONITOR, str(self.resized)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._monitor.stdout is not None
        self._monitor.stdout.readline()
        self._monitor.stdout.close()
        process = read_identity(self._monitor.pid)
        assert process is not None
        self.started = StartRecord(process=process, monitor=process, started_at=START)

    def end(self, code: int | None = None) -> None:
        if code is not None:
            self.log.place.exit.write_bytes(msgspec.json.encode(an_exit(code)))
        assert self._monitor.stdin is not None
        with suppress(BrokenPipeError):
            self._monitor.stdin.close()
        self._monitor.wait()

    async def attach(
        self, *, tty: bool = False, reads: bool = True, **request: bool
    ) -> ProcessStream:
        launch = a_launch(stdin=reads, tty=tty)
        options = StreamOptions(**request)
        return await attach_to(self.log.place, launch, self.started, options, clock=SystemClock())


@pytest.fixture
def container(tmp_path: Path) -> Iterator[AContainer]:
    container = AContainer(tmp_path)
    yield container
    container.end()


async def test_what_is_written_from_now_on_is_heard(container: AContainer) -> None:
    container.log.write("before")

    session = await container.attach()
    container.log.write("one")
    assert await session.read() == (OutputStream.STDOUT, b"one\n")
    container.log.write("two", tag="P")
    container.log.put_away()
    container.log.write("three")
    container.log.write("oops", stream="stderr")
    output = b""
    while not output.endswith(b"three\n"):
        piece = await session.read()
        assert piece is not None
        output += piece[1]
    assert output == b"twothree\n"
    assert await session.read() == (OutputStream.STDERR, b"oops\n")
    await session.close()


async def test_only_the_channels_that_were_asked_for(container: AContainer) -> None:
    session = await container.attach(stdout=False)
    container.log.write("out")
    container.log.write("err", stream="stderr")
    assert await session.read() == (OutputStream.STDERR, b"err\n")
    await session.close()


async def test_its_end_is_reported_after_all_its_output(container: AContainer) -> None:
    session = await container.attach()
    waiting = asyncio.ensure_future(session.wait())
    container.log.write("last")
    container.end(7)
    assert await session.read() == (OutputStream.STDOUT, b"last\n")
    assert await session.read() is None
    assert await waiting == 7
    await session.close()


async def test_an_end_without_an_exit_record(container: AContainer) -> None:
    session = await container.attach()
    container.end()
    assert await session.wait() == 137
    assert await session.read() is None
    await session.close()


async def test_a_container_that_has_ended(container: AContainer) -> None:
    container.end(0)

    async def attach() -> None:
        await container.attach()

    with pytest.raises(StreamUnavailableError, match="the container has ended"):
        await attach()


async def test_who_stops_waiting_loses_nothing(container: AContainer) -> None:
    output = b""
    session = await container.attach()
    for number in range(20):
        container.log.write(str(number))
        task = asyncio.ensure_future(session.read())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (piece := task.result()) is not None:
            output += piece[1]
    container.end(0)
    while (piece := await session.read()) is not None:
        output += piece[1]
    assert output == b"".join(b"%d\n" % number for number in range(20))
    await session.close()


async def test_input_goes_through_the_named_pipe(container: AContainer) -> None:
    os.mkfifo(container.log.place.stdin, 0o600)
    reader = os.open(container.log.place.stdin, os.O_RDONLY | os.O_NONBLOCK)

    async def scenario() -> None:
        session = await container.attach(stdin=True)
        await session.write(b"words\n")
        assert os.read(reader, 100) == b"words\n"
        writing = asyncio.ensure_future(session.write(b"x" * 200_000))
        done, _ = await asyncio.wait([writing], timeout=0.2)
        assert not done
        total = 0
        while total < 200_000:
            with suppress(BlockingIOError):
                total += len(os.read(reader, 65536))
            await asyncio.sleep(0)
        await writing
        await session.close_stdin()
        assert os.read(reader, 100) == b""
        await session.write(b"dropped")
        await session.close()

    try:
        await scenario()
    finally:
        os.close(reader)


@pytest.mark.parametrize("kind", ["nothing", "link", "file", "unread"])
async def test_an_input_that_is_none_takes_nothing(container: AContainer, kind: str) -> None:
    place = container.log.place
    other = place.path / "other"
    other.write_bytes(b"")
    if kind == "link":
        place.stdin.symlink_to(other)
    elif kind == "file":
        place.stdin.write_bytes(b"")
    elif kind == "unread":
        os.mkfifo(place.stdin)

    session = await container.attach(stdin=True)
    await session.write(b"words\n")
    await session.close_stdin()
    await session.close()
    assert other.read_bytes() == b""
    assert kind != "file" or place.stdin.read_bytes() == b""


async def test_who_does_not_read_its_input_is_not_given_any(container: AContainer) -> None:
    os.mkfifo(container.log.place.stdin)
    reader = os.open(container.log.place.stdin, os.O_RDONLY | os.O_NONBLOCK)

    async def scenario() -> None:
        for session in (await container.attach(), await container.attach(reads=False, stdin=True)):
            await session.write(b"words\n")
            await session.close()
        assert os.read(reader, 100) == b""

    try:
        await scenario()
    finally:
        os.close(reader)


async def test_the_monitor_receives_the_size_of_the_terminal(container: AContainer) -> None:
    plain = await container.attach()
    plain.resize(TerminalSize(columns=1, rows=1))
    await plain.close()
    assert not (container.log.place.path / "winsize").exists()
    session = await container.attach(tty=True)
    session.resize(TerminalSize(columns=132, rows=43))
    await session.close()
    assert (container.log.place.path / "winsize").read_text().split() == ["43", "132"]
    while not container.resized.exists():  # noqa: ASYNC110 - another process creates it
        await asyncio.sleep(0)


async def test_hanging_up_leaves_the_container_and_no_files(container: AContainer) -> None:
    container.log.write("before")

    await asyncio.to_thread(int)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    session = await container.attach(stdin=True)
    reading = asyncio.ensure_future(session.read())
    await asyncio.sleep(0)
    await session.close()
    assert await reading is None
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    os.kill(container.started.process.pid, signal.SIGCONT)
