"""Standard streams of a command: the monitor's ends and the command's ends."""

import errno
import fcntl
import os
import stat
import struct
import termios
from pathlib import Path
from typing import NamedTuple

from .log_lines import MAX_ENTRY_BYTES, LogLineEncoder
from .records import STDIN, WINSIZE, LaunchSpec
from .rotating_log_file import LogWriter
from .wall_clock import wall_nanos

_MAX_READS = 8
"""Chunks per turn: two full pipes; then the other stream gets its turn."""


class ChildStreams(NamedTuple):
    """The command's ends: files that become its 0, 1 and 2."""

    stdin: int
    stdout: int
    stderr: int
    terminal: int | None
    """File that becomes its controlling terminal. None: it has none, or gets it in the sandbox."""

    def close(self) -> None:
        """Close the parent's copies; the command has its own."""
        for file in {self.stdin, self.stdout, self.stderr}:
            os.close(file)


class OutputPump:
    """Copies one output stream of the command to the log."""

    def __init__(self, file: int, stream: str, log: LogWriter) -> None:
        os.set_blocking(file, False)
        self.file = file
        self.has_ended = False
        self._lines = LogLineEncoder(stream)
        self._log = log

    @property
    def has_partial(self) -> bool:
        """Whether an unterminated line is buffered."""
        return self._lines.has_partial

    def pump(self) -> int:
        """Copy some of the available output; return the number of bytes."""
        count, entries, now = 0, [], wall_nanos()
        for _ in range(_MAX_READS):
            chunk = self.read()
            entries.append(self._lines.feed(chunk, now))
            count += len(chunk)
            if len(chunk) < MAX_ENTRY_BYTES:
                break
        self._log.write(b"".join(entries))
        return count

    def read(self) -> bytes:
        """Return the next chunk; empty at the end, or if none is available."""
        try:
            chunk = os.read(self.file, MAX_ENTRY_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that no process has open
                raise
            chunk = b""
        self.has_ended = not chunk
        return chunk

    def feed(self, chunk: bytes) -> None:
        """Log a chunk that was read."""
        self._log.write(self._lines.feed(chunk, wall_nanos()))

    def flush(self) -> None:
        """Log an unterminated line as a partial entry."""
        self._log.write(self._lines.flush(wall_nanos()))


class StdinPump:
    """Copies input from the FIFO to the command."""

    def __init__(self, fifo: Path, target: int, *, once: bool, is_terminal: bool) -> None:
        os.set_blocking(target, False)
        # Opened for writing as well, the FIFO has no end of file when writers come and go.
        mode = os.O_RDONLY if once else os.O_RDWR
        self._source: int | None = _open_fifo(fifo, mode)
        self._target = target
        self._is_terminal = is_terminal
        self._buffer = b""

    @property
    def source(self) -> int | None:
        """File to read from; None while the buffer is full."""
        return None if self._buffer else self._source

    @property
    def target(self) -> int | None:
        """File to write to; None while there is nothing to write."""
        return self._target if self._buffer else None

    def pump(self) -> None:
        """Copy available input; at its end, close the command's input."""
        if self._source is None:
            return
        try:
            if not self._buffer:
                self._buffer = os.read(self._source, MAX_ENTRY_BYTES)
                if not self._buffer:
                    self.close()
                    return
            self._buffer = self._buffer[os.write(self._target, self._buffer) :]
        except BlockingIOError:
            pass
        except OSError:  # the command does not read any more
            self.close()

    def close(self) -> None:
        """Stop copying and close the files."""
        if self._source is None:
            return
        os.close(self._source)
        if not self._is_terminal:
            os.close(self._target)
        self._source, self._buffer = None, b""


class ContainerStreams(NamedTuple):
    """The monitor's ends of the command's streams."""

    outputs: list[OutputPump]
    input: StdinPump | None
    terminal: int | None

    def resize(self, folder: Path) -> None:
        """Set the terminal's size, if it has one, from the file with rows and columns."""
        if self.terminal is None:
            return
        try:
            rows, columns = (folder / WINSIZE).read_text().split()
            size = struct.pack("HHHH", int(rows), int(columns), 0, 0)
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)
        except (OSError, ValueError, struct.error):
            return  # no size yet, or an invalid one


def open_streams(
    folder: Path, launch: LaunchSpec, log: LogWriter
) -> tuple[ContainerStreams, ChildStreams]:
    """Open both ends of the streams that the launch record asks for. Raises OSError."""
    if launch.stdin:
        _make_fifo(folder / STDIN)
    return _open_terminal(folder, launch, log) if launch.tty else _open_pipes(folder, launch, log)


def _open_pipes(
    folder: Path, launch: LaunchSpec, log: LogWriter
) -> tuple[ContainerStreams, ChildStreams]:
    out, child_out = os.pipe()
    err, child_err = os.pipe()
    outputs = [OutputPump(out, "stdout", log), OutputPump(err, "stderr", log)]
    if not launch.stdin:
        null = os.open(os.devnull, os.O_RDONLY)
        return ContainerStreams(outputs, None, None), ChildStreams(null, child_out, child_err, None)
    child_in, stdin_writer = os.pipe()
    source = StdinPump(folder / STDIN, stdin_writer, once=launch.stdin_once, is_terminal=False)
    return ContainerStreams(outputs, source, None), ChildStreams(
        child_in, child_out, child_err, None
    )


def _open_terminal(
    folder: Path, launch: LaunchSpec, log: LogWriter
) -> tuple[ContainerStreams, ChildStreams]:
    master, slave = os.openpty()
    if launch.user is not None:
        os.fchown(slave, launch.user, -1)
    source = None
    if launch.stdin:
        source = StdinPump(folder / STDIN, master, once=launch.stdin_once, is_terminal=True)
    streams = ContainerStreams([OutputPump(master, "stdout", log)], source, master)
    streams.resize(folder)
    return streams, ChildStreams(slave, slave, slave, None if launch.setsid else slave)


def _make_fifo(path: Path) -> None:
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        if not stat.S_ISFIFO(path.lstat().st_mode):
            raise


def _open_fifo(path: Path, mode: int) -> int:
    fifo = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISFIFO(os.fstat(fifo).st_mode):
        os.close(fifo)
        raise FileExistsError(f"{path} is not a FIFO")
    return fifo
