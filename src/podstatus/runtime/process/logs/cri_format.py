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
from podstatus.runtime.streams import Channel, LogOptions

LINE_LIMIT = 1 << 20
"""Of a longer line the parts are passed on as they come: memory stays bounded."""

_ENTRY = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([^ \n]+) "
)
_FIXED = len("2026-11-15T20:00:00.123456789Z")
_CHANNELS = {b"stdout": Channel.OUT, b"stderr": Channel.ERR}
_SECOND = 1_000_000_000


class Entry(NamedTuple):
    """One line of the file: a line that was written, or a part of it."""

    time: bytes
    """As RFC 3339 in UTC with nanoseconds: such are in order as they are."""
    channel: Channel
    partial: bool
    """More of the same line follows."""
    text: bytes
    """With its newline, unless more follows."""


def parse_entry(line: bytes) -> Entry | None:
    """Read a line of the file, with its newline if it has one; None if it is no entry."""
    found = _ENTRY.match(line)
    if found is None:
        return None
    written, channel, tags = found.groups()
    time = _fixed(written)
    if time is None:
        return None
    # More tags may follow the first, behind a colon.
    partial = tags.partition(b":")[0] == b"P"
    text = line[found.end() :]
    return Entry(time, _CHANNELS[channel], partial, text.removesuffix(b"\n") if partial else text)


def log_time(unix_nanos: int) -> bytes:
    """A moment as entries have it."""
    seconds, nanos = divmod(unix_nanos, _SECOND)
    whole = str(Time.from_unix_nanos(seconds * _SECOND)).removesuffix("Z")
    return f"{whole}.{nanos:09}Z".encode()


class ChosenLines:
    """What is printed of the entries: those of the channel and time asked for, joined, cut."""

    def __init__(self, options: LogOptions) -> None:
        self._channel = options.channel
        self._timestamps = options.timestamps
        self._since = None if options.since is None else log_time(options.since)
        self._left = options.limit_bytes
        self._begun: dict[Channel, _Begun] = {}

    @property
    def full(self) -> bool:
        """Whether no more bytes may be printed."""
        return self._left is not None and self._left <= 0

    def add(self, entries: Iterable[Entry]) -> bytes:
        """What is to be printed now."""
        return self._cut(b"".join(text for entry in entries for text in self._texts(entry)))

    def end(self) -> bytes:
        """What is left of lines that were never finished."""
        rest = b"".join(b"".join(begun.parts) for begun in self._begun.values())
        self._begun.clear()
        return self._cut(rest)

    def _texts(self, entry: Entry) -> Iterator[bytes]:
        if self._channel not in (None, entry.channel):
            return
        begun = self._begun.get(entry.channel)
        if begun is None:
            if self._since is not None and entry.time < self._since:
                begun = _Begun(wanted=False)
            else:
                begun = _Begun(wanted=True)
                if self._timestamps:
                    begun.parts.append(entry.time + b" ")
        if begun.wanted:
            begun.add(entry.text)
        if entry.partial:
            self._begun[entry.channel] = begun
        else:
            self._begun.pop(entry.channel, None)
        if not entry.partial or begun.size > LINE_LIMIT:
            yield begun.take()

    def _cut(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        text = text[: max(0, self._left)]
        self._left -= len(text)
        return text


class _Begun:
    """A line of which not all parts have come."""

    __slots__ = ("parts", "size", "wanted")

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
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


def _fixed(written: bytes) -> bytes | None:
    if len(written) == _FIXED and written.endswith(b"Z"):
        return written
    try:
        return log_time(Time.parse(written.decode()).unix_nanos())
    except TimeError:
        return None
