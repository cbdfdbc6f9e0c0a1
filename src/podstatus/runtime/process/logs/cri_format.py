"""Entries of a container's log, in the CRI format: `time stream tag content`.

    2026-11-15T20:00:00.123456789Z stdout P the beginning of a long li
    2026-11-15T20:00:00.123456790Z stdout F ne

Invalid lines are skipped. Upstream: parseCRILog and logWriter, cri-client v0.36.4,
pkg/logs/logs.go. Upstream counts and prints every part of a long line separately; here the parts
form one line, even if the other stream is interleaved.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podstatus.kube.scalars.time import Time, TimeError
from podstatus.runtime.streams import LogOptions, OutputStream

MAX_LINE_BYTES = 1 << 20
"""Parts of a longer line are passed on as they come, so that memory stays bounded."""

_ENTRY_PATTERN = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([^ \n]+) "
)
_TIMESTAMP_LENGTH = len("2026-11-15T20:00:00.123456789Z")
_STREAMS = {b"stdout": OutputStream.STDOUT, b"stderr": OutputStream.STDERR}
_SECOND = 1_000_000_000


class LogEntry(NamedTuple):
    """One line of the file: a line of output, or a part of it."""

    time: bytes
    """RFC 3339 in UTC with nanoseconds; sorts lexicographically."""
    stream: OutputStream
    partial: bool
    """More of the same line follows."""
    text: bytes
    """With its newline, unless more follows."""


def parse_entry(line: bytes) -> LogEntry | None:
    """Parse a line of the file, with or without its newline; None if it is not an entry."""
    match = _ENTRY_PATTERN.match(line)
    if match is None:
        return None
    timestamp, stream, tags = match.groups()
    time = _fixed_width_time(timestamp)
    if time is None:
        return None
    # Further tags may follow the first after a colon.
    partial = tags.partition(b":")[0] == b"P"
    text = line[match.end() :]
    return LogEntry(time, _STREAMS[stream], partial, text.removesuffix(b"\n") if partial else text)


def log_time(unix_nanos: int) -> bytes:
    """Format ns since the Unix epoch as in log entries."""
    seconds, nanos = divmod(unix_nanos, _SECOND)
    whole = str(Time.from_unix_nanos(seconds * _SECOND)).removesuffix("Z")
    return f"{whole}.{nanos:09}Z".encode()


class LogFilter:
    """Selects, joins and truncates entries according to the options."""

    def __init__(self, options: LogOptions) -> None:
        self._stream = options.stream
        self._timestamps = options.timestamps
        self._since = None if options.since is None else log_time(options.since)
        self._remaining_bytes = options.limit_bytes
        self._partial_lines: dict[OutputStream, _PartialLine] = {}

    @property
    def is_full(self) -> bool:
        """Whether the limit of `limit_bytes` is reached."""
        return self._remaining_bytes is not None and self._remaining_bytes <= 0

    def add(self, entries: Iterable[LogEntry]) -> bytes:
        """Return the output for these entries."""
        return self._truncate(b"".join(text for entry in entries for text in self._texts(entry)))

    def end(self) -> bytes:
        """Return the output for unterminated lines."""
        rest = b"".join(b"".join(line.parts) for line in self._partial_lines.values())
        self._partial_lines.clear()
        return self._truncate(rest)

    def _texts(self, entry: LogEntry) -> Iterator[bytes]:
        if self._stream not in (None, entry.stream):
            return
        line = self._partial_lines.get(entry.stream)
        if line is None:
            if self._since is not None and entry.time < self._since:
                line = _PartialLine(selected=False)
            else:
                line = _PartialLine(selected=True)
                if self._timestamps:
                    line.parts.append(entry.time + b" ")
        if line.selected:
            line.add(entry.text)
        if entry.partial:
            self._partial_lines[entry.stream] = line
        else:
            self._partial_lines.pop(entry.stream, None)
        if not entry.partial or line.size > MAX_LINE_BYTES:
            yield line.take()

    def _truncate(self, text: bytes) -> bytes:
        if self._remaining_bytes is None:
            return text
        text = text[: max(0, self._remaining_bytes)]
        self._remaining_bytes -= len(text)
        return text


class _PartialLine:
    """A line whose parts are not complete."""

    __slots__ = ("parts", "selected", "size")

    def __init__(self, *, selected: bool) -> None:
        self.selected = selected
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, text: bytes) -> None:
        self.parts.append(text)
        self.size += len(text)

    def take(self) -> bytes:
        text = b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        return text


def _fixed_width_time(timestamp: bytes) -> bytes | None:
    if len(timestamp) == _TIMESTAMP_LENGTH and timestamp.endswith(b"Z"):
        return timestamp
    try:
        return log_time(Time.parse(timestamp.decode()).unix_nanos())
    except TimeError:
        return None
