import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.logs.cri_format import (
    MAX_LINE_BYTES,
    LogEntry,
    LogFilter,
    log_time,
    parse_entry,
)
from podstatus.runtime.streams import LogOptions, OutputStream

TIME = b"2026-11-15T20:00:00.123456789Z"
LATER = b"2026-11-15T20:00:01.000000000Z"


def out(text: bytes, *, time: bytes = TIME, partial: bool = False) -> LogEntry:
    return LogEntry(time, OutputStream.STDOUT, partial, text)


def err(text: bytes, *, time: bytes = TIME, partial: bool = False) -> LogEntry:
    return LogEntry(time, OutputStream.STDERR, partial, text)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (TIME + b" stdout F hello\n", out(b"hello\n")),
        (TIME + b" stderr F hello\n", err(b"hello\n")),
        (TIME + b" stdout P hel\n", out(b"hel", partial=True)),
        (TIME + b" stdout P:more hel\n", out(b"hel", partial=True)),
        (TIME + b" stdout F:more hello\n", out(b"hello\n")),
        (TIME + b" stdout F \n", out(b"\n")),
        (TIME + b" stdout F  two  blanks \n", out(b" two  blanks \n")),
        (TIME + b" stdout F \xff\r\x1b[0m\0\n", out(b"\xff\r\x1b[0m\0\n")),
        (TIME + b" stdout F torn", out(b"torn")),
        (
            b"2026-11-15T21:00:00.5+01:00 stdout F x\n",
            out(b"x\n", time=b"2026-11-15T20:00:00.500000000Z"),
        ),
        (b"2026-11-15T20:00:00Z stdout F x\n", out(b"x\n", time=b"2026-11-15T20:00:00.000000000Z")),
    ],
)
def test_a_line_is_read(line: bytes, entry: LogEntry) -> None:
    assert parse_entry(line) == entry


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"hello\n",
        TIME,
        TIME + b" stdout",
        TIME + b" stdout F",
        TIME + b" stdin F x\n",
        TIME + b" stdout  x\n",
        b"yesterday stdout F x\n",
        b"2026-13-15T20:00:00Z stdout F x\n",
        b'{"log":"x","stream":"stdout","time":"2026-11-15T20:00:00Z"}\n',
    ],
)
def test_what_is_no_entry_is_passed_over(line: bytes) -> None:
    assert parse_entry(line) is None


@given(st.binary())
def test_no_line_is_fatal(line: bytes) -> None:
    parse_entry(line)
    parse_entry(TIME + b" " + line)


@given(st.integers(0, Time.parse("9999-01-01T00:00:00Z").unix_nanos()))
def test_a_moment_is_written_as_it_is_read(nanos: int) -> None:
    assert Time.parse(log_time(nanos).decode()).unix_nanos() == nanos
    assert len(log_time(nanos)) == len(TIME)


def printed(options: LogOptions, *entries: LogEntry) -> bytes:
    chosen = LogFilter(options)
    return chosen.add(entries) + chosen.end()


def test_parts_are_joined_and_have_one_timestamp() -> None:
    parts = (out(b"a", partial=True), out(b"b", time=LATER, partial=True), out(b"c\n", time=LATER))
    assert printed(LogOptions(), *parts) == b"abc\n"
    assert printed(LogOptions(timestamps=True), *parts) == TIME + b" abc\n"


def test_the_other_stream_does_not_break_a_line() -> None:
    entries = (out(b"a", partial=True), err(b"oops\n"), out(b"b\n"))
    assert printed(LogOptions(), *entries) == b"oops\nab\n"


def test_a_line_that_was_never_finished_is_printed() -> None:
    assert printed(LogOptions(), out(b"one\n"), out(b"tw", partial=True)) == b"one\ntw"


def test_only_one_channel() -> None:
    entries = (out(b"a\n"), err(b"b\n"), out(b"c\n"))
    assert printed(LogOptions(stream=OutputStream.STDOUT), *entries) == b"a\nc\n"
    assert printed(LogOptions(stream=OutputStream.STDERR), *entries) == b"b\n"


def test_since_is_meant_with_its_moment() -> None:
    since = Time.parse(LATER.decode()).unix_nanos()
    entries = (out(b"a\n"), out(b"b\n", time=LATER))
    assert printed(LogOptions(since=since), *entries) == b"b\n"
    assert printed(LogOptions(since=since + 1), *entries) == b""
    # A line that began earlier is skipped with its end.
    begun = (out(b"a", partial=True), out(b"b\n", time=LATER), out(b"c\n", time=LATER))
    assert printed(LogOptions(since=since), *begun) == b"c\n"


@given(st.lists(st.binary(max_size=5)), st.integers(0, 40), st.booleans())
def test_a_limit_of_bytes_is_exact(texts: list[bytes], limit: int, timestamps: bool) -> None:
    entries = [out(text + b"\n") for text in texts]
    everything = printed(LogOptions(timestamps=timestamps), *entries)
    chosen = LogFilter(LogOptions(timestamps=timestamps, limit_bytes=limit))
    some = b"".join(chosen.add([entry]) for entry in entries) + chosen.end()
    assert some == everything[:limit]
    assert chosen.is_full == (len(everything) >= limit)


def test_a_line_without_end_is_not_kept() -> None:
    chosen = LogFilter(LogOptions(timestamps=True))
    part = out(b"x" * 16384, partial=True)
    pieces = [chosen.add([part]) for _ in range(200)]
    assert max(len(piece) for piece in pieces) < MAX_LINE_BYTES + 2 * 16384
    whole = b"".join(pieces) + chosen.add([out(b"\n")]) + chosen.end()
    assert whole == TIME + b" " + b"x" * 16384 * 200 + b"\n"
