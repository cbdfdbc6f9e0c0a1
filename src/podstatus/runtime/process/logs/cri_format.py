"""Lines of a container's log, in the format of CRI: `time stream tag content`.

    2026-11-15T20:00:00.123456789Z stdout P the beginning of a long li
    2026-11-15T20:00:00.123456790Z stdout F ne

A line that cannot be read is passed over. Upstream: parseCRILog and logWriter, cri-client v0.36.4,
pkg/logs/logs.go. There every part of a long line counts and is printed by itself; here the parts
are one line, also when the other stream comes in between.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podstatus.kube.scalars.time import Time, TimeError
from podstatus.runtime.streams import LogOptions, OutputStream

MAX_LINE_BYTES = 1 << 20
"""Of a longer line the parts are passed on as they come: memory stays bounded."""

_ENTRY_PATTERN = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([^ \n]+) "
)
_TIMESTAMP_LENGTH = len("2026-11-15T20:00:00.123456789Z")
_STREAMS = {b"stdout": OutputStream.STDOUT, b"stderr": OutputStream.STDERR}
_SECOND = 1_000_000_000


class LogEntry(NamedTuple):
    """One line of the file: a line that was written, or a part of it."""

    time: bytes
    """As RFC 3339 in UTC with nanoseconds: such are in order as they are."""
    stream: OutputStream
    partial: bool
    """More of the same line follows."""
    text: bytes
    """With its newline, unless more follows."""


def parse_entry(line: bytes) -> LogEntry | None:
    """Read a line of the file, with its newline if it has one; None if it is no entry."""
    found = _ENTRY_PATTERN.match(line)
    if found is None:
        return None
    written, channel, tags = found.groups()
    time = _fixed_width_time(written)
    if time is None:
        return None
    # More tags may follow the first, behind a colon.
    partial = tags.partition(b":")[0] == b"P"
    text = line[found.end() :]
    return LogEntry(time, _STREAMS[channel], partial, text.removesuffix(b"\n") if partial else text)


def log_time(unix_nanos: int) -> bytes:
    """A moment as entries have it."""
    seconds, nanos = divmod(unix_nanos, _SECOND)
    whole = str(Time.from_unix_nanos(seconds * _SECOND)).removesuffix("Z")
    return f"{whole}.{nanos:09}Z".encode()


class LogFilter:
    """What is printed of the entries: those of the channel and time asked for, joined, cut."""

    def __init__(self, options: LogOptions) -> None:
        self._stream = options.stream
        self._timestamps = options.timestamps
        self._since = None if options.since is None else log_time(options.since)
        self._remaining_bytes = options.limit_bytes
        self._partial_lines: dict[OutputStream, _PartialLine] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more bytes may be printed."""
        return self._remaining_bytes is not None and self._remaining_bytes <= 0

    def add(self, entries: Iterable[LogEntry]) -> bytes:
        """What is to be printed now."""
        return self._truncate(b"".join(text for entry in entries for text in self._texts(entry)))

    def end(self) -> bytes:
        """What is left of lines that were never finished."""
        rest = b"".join(b"".join(begun.parts) for begun in self._partial_lines.values())
        self._partial_lines.clear()
        return self._truncate(rest)

    def _texts(self, entry: LogEntry) -> Iterator[bytes]:
        if self._stream not in (None, entry.stream):
            return
        begun = self._partial_lines.get(entry.stream)
        if begun is None:
            if self._since is not None and entry.time < self._since:
                begun = _PartialLine(selected=False)
            else:
                begun = _PartialLine(selected=True)
                if self._timestamps:
                    begun.parts.append(entry.time + b" ")
        if begun.selected:
            begun.add(entry.text)
        if entry.partial:
            self._partial_lines[entry.stream] = begun
        else:
            self._partial_lines.pop(entry.stream, None)
        if not entry.partial or begun.size > MAX_LINE_BYTES:
            yield begun.take()

    def _truncate(self, text: bytes) -> bytes:
        if self._remaining_bytes is None:
            return text
        text = text[: max(0, self._remaining_bytes)]
        self._remaining_bytes -= len(text)
        return text


class _PartialLine:
    """A line of which not all parts have come."""

    __slots__ = ("parts", "selected", "size")

    def __init__(self, *, selected: bool) -> None:
        self.selected = selected
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, text: bytes) -> None:
        self.parts.append(text)
        self.size += len(text)

    def take(self) -> bytes:
        taken = b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        return taken


def _fixed_width_time(written: bytes) -> bytes | None:
    if len(written) == _TIMESTAMP_LENGTH and written.endswith(b"Z"):
        return written
    try:
        return log_time(Time.parse(written.decode()).unix_nanos())
    except TimeError:
        return None
