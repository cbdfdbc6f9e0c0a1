"""The files of a container's log, oldest first: `0.log.<when it was put away>`, …, and `0.log`.

They are put away and removed by the keeper while they are read. A file that is open stays
readable, so all that are there at one moment are opened together; which file comes next is found
by what a file is (its inode), not by its name. Everything here blocks, for one block of a file at
a time.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from podstatus.runtime.process.logs.cri_format import LogEntry, parse_entry
from podstatus.runtime.streams import OutputStream

BLOCK_BYTES = 256 * 1024
"""Many times as long as an entry can be."""
_MAX_OPEN_ATTEMPTS = 20
"""How often files are looked up anew if one is put away meanwhile: at worst, every few ms."""
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LogFile:
    """An open file of a log, and how far it was read."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        status = os.fstat(fd)
        self.identity = status.st_dev, status.st_ino
        self.is_regular = stat.S_ISREG(status.st_mode)
        self.position = 0
        self._end: int | None = None
        self._skipping = False

    def size(self) -> int:
        """How long it is now."""
        return os.fstat(self._fd).st_size

    def stop_at_current_end(self) -> None:
        """Read nothing that is written from now on: who writes fast would be read for ever."""
        self._end = self.size()

    def close(self) -> None:
        """No more is read."""
        os.close(self._fd)

    def read(self) -> list[LogEntry] | None:
        """The entries of the next block, of whole lines; None if there is none for now.

        A line whose end is missing is read again next time: when the disk is full, the keeper
        takes back what it wrote of it.
        """
        block = self._read_block()
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) == BLOCK_BYTES:
            # Far longer than any entry: nothing of it is kept.
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
        """The last line, if its end never came and it can be read all the same."""
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
        """All entries from the last to the first, each with where it ends."""
        start = self.size()
        rest, too_long = b"", False
        while start > 0:
            begin = max(0, start - BLOCK_BYTES)
            data = os.pread(self._fd, start - begin, begin) + rest
            start, end = begin, begin + len(data)
            # What comes before belongs to a line that begins in an earlier block.
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
    """All files that there are of a log, oldest first. Raises FileNotFoundError for no folder."""
    files: list[LogFile] = []
    for _ in range(_MAX_OPEN_ATTEMPTS):
        names = _file_names(log)
        close_all(files)
        files = [file for name in names if (file := _open(log.with_name(name))) is not None]
        # The same names before and after: none was put away meanwhile, each name was one file.
        if _file_names(log) == names:
            break
    return files


def open_newer(log: Path, last: LogFile) -> list[LogFile]:
    """The files that come after one; those that are left if it is gone. Empty: it is the newest."""
    if _identity(log) == last.identity:
        return []
    files = open_log(log)
    at = next((i for i, file in enumerate(files) if file.identity == last.identity), -1)
    close_all(files[: at + 1])
    return files[at + 1 :]


def seek_to_tail(files: Sequence[LogFile], count: int, stream: OutputStream | None) -> None:
    """Go to where so many lines of a channel are left; only what follows is read.

    Parts of a long line are one line, unless another stream's line ends between them just where
    this begins: then only the rest of it is found.
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
    """Read only what is written from now on."""
    for file in files:
        file.position = file.size()


def close_all(files: Sequence[LogFile]) -> None:
    """None of them is read any more."""
    for file in files:
        file.close()


def _file_names(log: Path) -> list[str]:
    """Names tell the order: they end in when the file was put away."""
    names = {path.name for path in log.parent.iterdir()}
    older = sorted(name for name in names if name.startswith(f"{log.name}.") and _is_complete(name))
    return [*older, log.name] if log.name in names else older


def _is_complete(name: str) -> bool:
    return not name.endswith((".gz", ".tmp"))


def _open(path: Path) -> LogFile | None:
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
    """With their newlines; the last one may have none. Nothing but a newline ends a line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _entries(lines: Sequence[bytes]) -> list[LogEntry]:
    return [entry for line in lines if (entry := parse_entry(line)) is not None]
