"""The log file of a container, with rotation."""

import os
import time
from pathlib import Path

from .log_lines import timestamp
from .stderr_log import log_error
from .wall_clock import wall_nanos


class LogWriter:
    """Appends entries to the log. A full disk loses entries but never stops the container."""

    def __init__(self, path: Path, *, max_bytes: int, max_files: int) -> None:
        self._path = path
        self._max_bytes, self._max_files = max_bytes, max_files
        self._file: int | None = None
        self._size = 0
        self._dropped = 0
        self._error = ""
        self._rotated_at = 0

    def write(self, entries: bytes) -> None:
        """Append whole entries. Dropped entries are counted and logged once writing works."""
        if self._dropped and not self._log_dropped():
            self._dropped += entries.count(b"\n")
            return
        stored = self._write_entries(entries)
        self._dropped += entries.count(b"\n", stored)

    def close(self) -> None:
        """Close the log; no more entries follow."""
        if self._dropped and not self._log_dropped():
            log_error(f"{self._path}: {self._dropped} lines were dropped: {self._error}")
        self._close_file()

    def _log_dropped(self) -> bool:
        text = (
            f" stderr F podstatus: {self._dropped} lines of this log were dropped: {self._error}\n"
        )
        entry = timestamp(wall_nanos()) + text.encode()
        if self._write_entries(entry) < len(entry):
            return False
        self._dropped = 0
        return True

    def _write_entries(self, entries: bytes) -> int:
        """Write as many bytes as possible; return how many were written."""
        written = 0
        try:
            while written < len(entries):
                file = self._open_file()
                end = self._fitting_end(entries, written)
                if end == written:
                    self._rotate()
                    continue
                appended = self._append(file, entries[written:end])
                written += appended
                if written < end:
                    break
        except OSError as error:
            self._error = _describe_error(error)
        return written

    def _fitting_end(self, entries: bytes, start: int) -> int:
        available = self._max_bytes - self._size
        if len(entries) - start <= available:
            return len(entries)
        end = entries.rfind(b"\n", start, start + max(available, 0)) + 1
        if end == 0 and self._size == 0:  # a single entry that is too long for any file
            end = entries.index(b"\n", start) + 1
        return end or start

    def _append(self, file: int, entries: bytes) -> int:
        written = 0
        try:
            while written < len(entries):
                written += os.write(file, entries[written:])
        except OSError as error:
            self._error = _describe_error(error)
            # Never leave half an entry: the next one would be read as its end.
            written = entries.rfind(b"\n", 0, written) + 1
            os.ftruncate(file, self._size + written)
        self._size += written
        return written

    def _rotate(self) -> None:
        self._close_file()
        # Unique and ascending names, even if the clock is set back.
        self._rotated_at = max(wall_nanos(), self._rotated_at + 1)
        seconds, fraction = divmod(self._rotated_at, 10**9)
        when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))
        self._path.rename(self._path.with_name(f"{self._path.name}.{when}.{fraction:09}"))
        earlier = sorted(self._path.parent.glob(f"{self._path.name}.*"))
        for path in earlier[: max(0, len(earlier) - (self._max_files - 1))]:
            path.unlink(missing_ok=True)

    def _open_file(self) -> int:
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._file).st_size
        return self._file

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self._size = None, 0


def _describe_error(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
