import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.system_clock import SystemClock
from podstatus.runtime.process.logs import files, reader
from podstatus.runtime.process.logs.files import BLOCK_BYTES
from podstatus.runtime.process.logs.reader import read_log
from podstatus.runtime.streams import LogOptions, OutputStream, StreamUnavailableError
from tests.runtime.process.a_log import START, ALog
from tests.support.loops import until

CLOCK = SystemClock()


@pytest.fixture
def log(tmp_path: Path) -> ALog:
    return ALog(tmp_path)


def pieces(log: ALog, options: LogOptions, *, ended: bool = True) -> AsyncIterator[bytes]:
    return read_log(log.place.log, options, has_ended=lambda: ended, clock=CLOCK)


async def read_all(log: ALog, options: LogOptions) -> bytes:
    return b"".join([piece async for piece in pieces(log, options)])


def read(log: ALog, **options: object) -> bytes:
    return asyncio.run(read_all(log, LogOptions(**options)))  # type: ignore[arg-type]


@pytest.mark.parametrize("follow", [False, True])
def test_all_files_are_read_oldest_first(log: ALog, follow: bool) -> None:
    log.write("one", "two")
    log.put_away()
    log.write("three")
    log.put_away()
    log.write("four")
    assert read(log, follow=follow) == b"one\ntwo\nthree\nfour\n"


def test_a_log_that_was_not_begun_is_empty(log: ALog) -> None:
    assert read(log) == b""
    assert read(log, follow=True, tail_lines=3) == b""


def test_no_folder_is_no_log(log: ALog) -> None:
    gone = ALog(log.place.path / "gone")
    with pytest.raises(
        StreamUnavailableError, match=r"cannot read the log: No such file or directory"
    ):
        read(gone)


def test_links_pipes_and_folders_are_no_logs(log: ALog, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(log.entry("secret"))
    (tmp_path / "0.log.1").symlink_to(secret)
    os.mkfifo(tmp_path / "0.log.2")
    (tmp_path / "0.log.3").mkdir()
    log.write("mine")
    assert read(log) == b"mine\n"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, ""),
        (1, "6\n"),
        (2, "5\n6\n"),
        (3, "4\n5\n6\n"),
        (6, "1\n2\n3\n4\n5\n6\n"),
        (7, "1\n2\n3\n4\n5\n6\n"),
    ],
)
def test_the_last_lines_go_back_into_older_files(log: ALog, count: int, expected: str) -> None:
    log.write("1", "2", "3")
    log.put_away()
    log.write("4", "5")
    log.put_away()
    log.write("6")
    assert read(log, tail_lines=count) == expected.encode()
    assert read(log, tail_lines=count, follow=True) == expected.encode()


def test_the_last_lines_of_one_channel(log: ALog) -> None:
    log.write("oops", stream="stderr")
    log.write(*(str(n) for n in range(50)))
    assert read(log, tail_lines=1, stream=OutputStream.STDERR) == b"oops\n"
    assert read(log, tail_lines=2, stream=OutputStream.STDOUT) == b"48\n49\n"


def test_a_long_line_counts_once(log: ALog) -> None:
    log.write("before")
    log.write("a", "b", tag="P")
    log.put_away()
    log.write("c", tag="P")
    log.write("d")
    assert read(log, tail_lines=1) == b"abcd\n"
    log.write("unfinished", tag="P")
    assert read(log, tail_lines=1) == b"unfinished"
    assert read(log, tail_lines=2) == b"abcd\nunfinished"


LINES = st.lists(
    st.tuples(st.text("ab", max_size=3), st.booleans(), st.sampled_from("FFP")), max_size=12
)


@given(LINES, st.integers(1, 14), st.integers(1, 400))
def test_the_last_lines_are_the_end_of_all(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, bool, str]],
    count: int,
    block: int,
) -> None:
    log = ALog(tmp_path_factory.mktemp("log"), keep=100)
    for text, puts_away, tag in lines:
        log.write(text, tag=tag)
        if puts_away:
            log.put_away()
    everything = read(log)
    with pytest.MonkeyPatch.context() as patch:
        # Room for at least one entry.
        patch.setattr(files, "BLOCK_BYTES", block + 60)
        assert read(log) == everything
        expected = b"".join(re.findall(rb"[^\n]*\n|[^\n]+\Z", everything)[-count:])
        last = read(log, tail_lines=count)
    # Of an unterminated line, at most an empty part may be left.
    assert last == expected or (lines[-1][2] == "P" and everything.endswith(b"\n"))


def test_the_last_lines_of_a_huge_log_are_read_from_its_end(
    log: ALog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_raw(log.entry("x" * 100) * 100_000)
    log.write("last")
    amounts = []
    pread = os.pread

    def counted(file: int, length: int, offset: int) -> bytes:
        amounts.append(length)
        return pread(file, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    assert read(log, tail_lines=1) == b"last\n"
    assert sum(amounts) <= 3 * BLOCK_BYTES < log.place.log.stat().st_size / 10


def test_since_goes_back_into_older_files(log: ALog) -> None:
    log.write("0", "1", "2")
    log.put_away()
    log.write("3")
    assert read(log, since=START + 2 * 10**9) == b"2\n3\n"
    assert read(log, since=START + 2 * 10**9, tail_lines=1) == b"3\n"


def test_limit_and_timestamps(log: ALog) -> None:
    log.write("one", "two")
    whole = b"2026-11-15T20:00:00.000000000Z one\n2026-11-15T20:00:01.000000000Z two\n"
    assert read(log, timestamps=True) == whole
    assert read(log, timestamps=True, limit_bytes=40) == whole[:40]
    assert read(log, limit_bytes=0) == b""


def test_lines_that_cannot_be_read_are_skipped(log: ALog) -> None:
    log.write("one")
    log.write_raw(b"\0\xffgarbage\n\n" + b"y" * (3 * BLOCK_BYTES) + b"\n")
    log.write("two")
    log.write_raw(log.entry("torn")[:-1])
    assert read(log) == b"one\ntwo\ntorn"
    assert read(log, tail_lines=2) == b"two\ntorn"
    assert read(log, tail_lines=3) == b"one\ntwo\ntorn"


async def test_who_writes_for_ever_is_read_to_an_end(log: ALog) -> None:
    log.write_raw(log.entry("x" * 100) * 10_000)

    async def scenario() -> int:
        total = 0
        async for piece in pieces(log, LogOptions(), ended=False):
            total += len(piece)
            log.write_raw(log.entry("y" * 100) * 10_000)
        return total

    assert await scenario() == 10_000 * 101


class Follower:
    """Follows a log in a task; a test waits for certain output."""

    def __init__(self, log: ALog, options: LogOptions) -> None:
        self.ended = False
        self.seen = b""
        self._news = asyncio.Event()
        self._log, self._options = log, options
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        text = read_log(
            self._log.place.log, self._options, has_ended=lambda: self.ended, clock=CLOCK
        )
        async for piece in text:
            self.seen += piece
            self._news.set()

    async def until(self, seen: bytes) -> None:
        async with asyncio.timeout(60):
            while self.seen != seen:
                await self._news.wait()
                self._news.clear()

    async def end(self) -> bytes:
        self.ended = True
        async with asyncio.timeout(60):
            await self.task
        return self.seen


async def test_a_log_is_followed_across_files(log: ALog) -> None:
    async def scenario() -> bytes:
        follower = Follower(log, LogOptions(follow=True))
        log.write("one")
        await follower.until(b"one\n")
        log.write("two")
        log.put_away()
        await follower.until(b"one\ntwo\n")
        log.write("three")
        log.put_away()
        log.write("four")
        log.put_away()
        log.write("five")
        await follower.until(b"one\ntwo\nthree\nfour\nfive\n")
        log.write("six")
        return await follower.end()

    assert await scenario() == b"one\ntwo\nthree\nfour\nfive\nsix\n"


async def test_nothing_is_lost_or_seen_twice_while_files_are_put_away(log: ALog) -> None:
    total = 3000

    def write() -> None:
        for number in range(total):
            log.write(str(number))
            if number % 100 == 99:
                log.put_away()

    log.keep = 1000

    async def scenario() -> bytes:
        follower = Follower(log, LogOptions(follow=True))
        await asyncio.to_thread(write)
        return await follower.end()

    expected = b"".join(b"%d\n" % number for number in range(total))
    assert await scenario() == expected


def test_a_file_that_is_put_away_while_files_are_opened_is_not_missed(
    log: ALog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write("one")
    log.put_away()
    log.write("two")
    opened = files.open_log_file
    moments = [True]

    def open_late(path: Path) -> files.LogFile | None:
        if path == log.place.log and moments:
            moments.pop()
            log.put_away()
            log.write("three")
        return opened(path)

    monkeypatch.setattr(files, "open_log_file", open_late)
    assert read(log) == b"one\ntwo\nthree\n"


async def test_what_is_written_just_before_a_file_is_put_away_is_not_missed(
    log: ALog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write("one")
    open_later = files.open_newer
    moments = [True]

    def late(path: Path, last: files.LogFile) -> list[files.LogFile]:
        if moments:
            moments.pop()
            log.write("two")
            log.put_away()
            log.write("three")
        return open_later(path, last)

    monkeypatch.setattr(reader, "open_newer", late)
    # As if the file had been rotated just before it is looked up.
    monkeypatch.setattr(reader.LogReader, "has_more", lambda _: True)

    async def scenario() -> bytes:
        follower = Follower(log, LogOptions(follow=True))
        await follower.until(b"one\n")
        await follower.until(b"one\ntwo\nthree\n")
        return await follower.end()

    assert await scenario() == b"one\ntwo\nthree\n"


async def test_a_line_that_is_taken_back_is_not_seen(log: ALog) -> None:
    async def scenario() -> bytes:
        follower = Follower(log, LogOptions(follow=True))
        log.write("one")
        await follower.until(b"one\n")
        size = log.place.log.stat().st_size
        log.write_raw(log.entry("half of a li")[:-1])
        # Long enough for the follower to see it.
        await asyncio.sleep(0.25)
        os.truncate(log.place.log, size)
        log.write("two")
        return await follower.end()

    assert await scenario() == b"one\ntwo\n"


async def test_who_follows_from_the_end_sees_only_what_comes(log: ALog) -> None:
    log.write("old")

    async def scenario() -> bytes:
        follower = Follower(log, LogOptions(follow=True, tail_lines=1))
        await follower.until(b"old\n")
        log.write("new")
        return await follower.end()

    assert await scenario() == b"old\nnew\n"


async def test_who_stops_reading_leaves_no_files_open(log: ALog) -> None:
    log.write_raw(log.entry("x" * 100) * 20_000)
    log.put_away()
    log.write("y")
    await asyncio.to_thread(int)
    before = open_files()
    for _ in range(5):
        async with aclosing(pieces(log, LogOptions(follow=True), ended=False)) as text:  # type: ignore[type-var]
            assert await anext(text)
    follower = Follower(log, LogOptions(follow=True))
    await asyncio.sleep(0)
    follower.task.cancel()
    await asyncio.wait([follower.task])
    # A thread that still reads closes the files when it is done.
    await until(lambda: open_files() <= before)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
