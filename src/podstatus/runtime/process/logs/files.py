"""The files of a container's log, oldest first: `0.log.<time of rotation>`, …, and `0.log`.

The monitor rotates and removes files while they are read. An open file stays readable, so all files
are opened together, and the next file is found by inode, not by name. Everything here blocks, for
at most one block of a file at a time.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from podstatus.runtime.process.logs.cri_format import LogEntry, parse_entry
from podstatus.runtime.streams import OutputStream

BLOCK_BYTES = 256 * 1024
"""Many times the maximum length of an entry."""
_MAX_OPEN_ATTEMPTS = 20
"""Retries if a file is rotated while the files are opened: at worst every few ms."""
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LogFile:
    """An open log file and its read position."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        status = os.fstat(fd)
        self.identity = status.st_dev, status.st_ino
        self.is_regular = stat.S_ISREG(status.st_mode)
        self.position = 0
        self._end: int | None = None
        self._skipping = False

    def size(self) -> int:
        """Return the current size in bytes."""
        return os.fstat(self._fd).st_size

    def stop_at_current_end(self) -> None:
        """Ignore later output: a fast writer would otherwise be read forever."""
        self._end = self.size()

    def close(self) -> None:
        """Close the file; it cannot be read any more."""
        os.close(self._fd)

    def read(self) -> list[LogEntry] | None:
        """Return the entries of the next block, whole lines only; None if there is none for now.

        An unterminated line is read again next time: on a full disk, the monitor removes a partial
        one.
        """
        block = self._read_block()
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) == BLOCK_BYTES:
            # Far longer than any entry: skip it.
            end, self._skipping = len(block), True
            self.position += end
            return []
        if end == 0:
            return None
        self.position += end
        lines = _lines(block[:end])
        if self._skipping:
            self._skipping = False
            del lines[0]
        return _entries(lines)

    def read_partial(self) -> list[LogEntry]:
        """Return the last line although it is unterminated, if it is a valid entry."""
        rest = self._read_block()
        self.position += len(rest)
        return [] if self._skipping or not rest else _entries([rest])

    def _read_block(self) -> bytes:
        length = (
            BLOCK_BYTES
            if self._end is None
            else min(BLOCK_BYTES, max(0, self._end - self.position))
        )
        return os.pread(self._fd, length, self.position)

    def read_backwards(self) -> Iterator[tuple[int, LogEntry]]:
        """Yield all entries from last to first, each with the offset of its end."""
        start = self.size()
        rest, too_long = b"", False
        while start > 0:
            begin = max(0, start - BLOCK_BYTES)
            data = os.pread(self._fd, start - begin, begin) + rest
            start, end = begin, begin + len(data)
            # Data before this offset belongs to a line that starts in an earlier block.
            first = 0 if begin == 0 else (data.find(b"\n") + 1 or len(data))
            lines = _lines(data[first:])
            for line in reversed(lines):
                entry = None if too_long and end == begin + len(data) else parse_entry(line)
                if entry is not None:
                    yield end, entry
                end -= len(line)
            rest = data[:first]
            too_long = len(rest) > BLOCK_BYTES or (too_long and not lines)
            if len(rest) > BLOCK_BYTES:
                rest = b""


def open_log(log: Path) -> list[LogFile]:
    """Open all files of a log, oldest first. Raises FileNotFoundError if its folder is gone."""
    files: list[LogFile] = []
    for _ in range(_MAX_OPEN_ATTEMPTS):
        names = _file_names(log)
        close_all(files)
        files = [file for name in names if (file := open_log_file(log.with_name(name))) is not None]
        # The same names before and after: no rotation in between, so each name was one file.
        if _file_names(log) == names:
            break
    return files


def open_newer(log: Path, last: LogFile) -> list[LogFile]:
    """Open the files newer than `last`, or all if it is gone; empty if it is the newest."""
    if _identity(log) == last.identity:
        return []
    files = open_log(log)
    index = next((i for i, file in enumerate(files) if file.identity == last.identity), -1)
    close_all(files[: index + 1])
    return files[index + 1 :]


def seek_to_tail(files: Sequence[LogFile], count: int, stream: OutputStream | None) -> None:
    """Position the files so that only the last `count` lines of a stream are read.

    Parts of a long line count as one line, unless a line of the other stream ends between them at
    the very start of the tail: then only the rest of the long line is read.
    """
    seen: set[OutputStream] = set()
    for index in reversed(range(len(files))):
        for end, entry in files[index].read_backwards():
            if stream not in (None, entry.stream):
                continue
            if entry.partial and entry.stream in seen:
                continue
            seen.add(entry.stream)
            if count == 0:
                files[index].position = end
                for older in files[:index]:
                    older.position = older.size()
                return
            count -= 1


def seek_to_end(files: Sequence[LogFile]) -> None:
    """Position the files so that only later output is read."""
    for file in files:
        file.position = file.size()


def close_all(files: Sequence[LogFile]) -> None:
    for file in files:
        file.close()


def _file_names(log: Path) -> list[str]:
    """Return the file names in order: the suffix is the time of the rotation."""
    names = {path.name for path in log.parent.iterdir()}
    older = sorted(name for name in names if name.startswith(f"{log.name}.") and _is_complete(name))
    return [*older, log.name] if log.name in names else older


def _is_complete(name: str) -> bool:
    return not name.endswith((".gz", ".tmp"))


def open_log_file(path: Path) -> LogFile | None:
    with suppress(OSError):
        file = LogFile(os.open(path, _OPEN_FLAGS))
        if file.is_regular:
            return file
        file.close()
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _lines(data: bytes) -> list[bytes]:
    """Split into lines with their newlines; the last may have none. Only LF ends a line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _entries(lines: Sequence[bytes]) -> list[LogEntry]:
    return [entry for line in lines if (entry := parse_entry(line)) is not None]
