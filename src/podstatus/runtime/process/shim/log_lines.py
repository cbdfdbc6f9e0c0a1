"""Encodes container output as log entries in the CRI format.

    2026-11-15T20:00:00.123456789Z stdout F a line
    2026-11-15T20:00:00.123456789Z stderr P the beginning of a long one

Bytes are not changed: a last line without a newline is tagged P, as by containerd, and readers add
none. Upstream of the limit: containerd's max_container_log_line_size.
"""

import time

MAX_ENTRY_BYTES = 16 * 1024
"""Bytes of a line per entry; longer lines are split."""


def timestamp(unix_nanos: int) -> bytes:
    """Format ns since the Unix epoch as RFC 3339 in UTC, always with nine digits."""
    seconds, fraction = divmod(unix_nanos, 10**9)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{fraction:09}Z".encode()


class LogLineEncoder:
    """Encodes the output of one stream, read in chunks of any alignment."""

    def __init__(self, stream: str) -> None:
        self._stream = stream.encode()
        self._partial = b""

    @property
    def has_partial(self) -> bool:
        """Whether an unterminated line is buffered."""
        return bool(self._partial)

    def feed(self, chunk: bytes, now: int) -> bytes:
        """Return the entries for a chunk of at most MAX_ENTRY_BYTES bytes."""
        full, partial = self._prefixes(now)
        first, newline, others = chunk.partition(b"\n")
        entries = self._split_long(self._partial + first, partial)
        if not newline:
            return entries
        entries += full + self._partial + b"\n"
        # No line here exceeds the limit, as the chunk does not: so a single replace will do.
        whole, newline, self._partial = others.rpartition(b"\n")
        if newline:
            entries += full + whole.replace(b"\n", b"\n" + full) + b"\n"
        return entries

    def flush(self, now: int) -> bytes:
        """Return an entry for the buffered part of a line, whose end is to come or missing."""
        if not self._partial:
            return b""
        entry = self._prefixes(now)[1] + self._partial + b"\n"
        self._partial = b""
        return entry

    def _split_long(self, line: bytes, partial: bytes) -> bytes:
        entries = b""
        while len(line) > MAX_ENTRY_BYTES:
            entries += partial + line[:MAX_ENTRY_BYTES] + b"\n"
            line = line[MAX_ENTRY_BYTES:]
        self._partial = line
        return entries

    def _prefixes(self, now: int) -> tuple[bytes, bytes]:
        head = timestamp(now) + b" " + self._stream
        return head + b" F ", head + b" P "
