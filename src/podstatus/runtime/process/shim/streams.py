"""What a command reads from and writes to, seen from the keeper's side and from its own."""

import errno
import fcntl
import os
import stat
import struct
import termios
from pathlib import Path
from typing import NamedTuple

from .log_file import LogWriter
from .log_lines import MAX_ENTRY_BYTES, LogLineEncoder
from .records import STDIN, WINSIZE, LaunchSpec
from .wall_clock import wall_nanos

_MAX_READS = 8
"""How many pieces at once: two pipes full; then the other stream has its turn."""


class ChildStreams(NamedTuple):
    """The command's side: files that become its 0, 1 and 2."""

    stdin: int
    stdout: int
    stderr: int
    terminal: int | None
    """What becomes its controlling terminal."""

    def close(self) -> None:
        """The command has its own of each now."""
        for file in {self.stdin, self.stdout, self.stderr}:
            os.close(file)


class OutputPump:
    """A stream that the command writes to, on its way to the log."""

    def __init__(self, file: int, stream: str, log: LogWriter) -> None:
        os.set_blocking(file, False)
        self.file = file
        self.has_ended = False
        self._lines = LogLineEncoder(stream)
        self._log = log

    @property
    def has_partial(self) -> bool:
        """Whether the beginning of a line waits for its end."""
        return self._lines.has_partial

    def pump(self) -> int:
        """Pass on some of what there is; how many bytes."""
        count, entries, now = 0, [], wall_nanos()
        for _ in range(_MAX_READS):
            piece = self.read()
            entries.append(self._lines.feed(piece, now))
            count += len(piece)
            if len(piece) < MAX_ENTRY_BYTES:
                break
        self._log.write(b"".join(entries))
        return count

    def read(self) -> bytes:
        """The next piece; empty if there is none (any more)."""
        try:
            piece = os.read(self.file, MAX_ENTRY_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that nobody has open
                raise
            piece = b""
        self.has_ended = not piece
        return piece

    def flush(self) -> None:
        """Pass on the beginning of a line as well."""
        self._log.write(self._lines.flush(wall_nanos()))

    def end(self) -> None:
        """Pass on a line that is not finished."""
        self._log.write(self._lines.end(wall_nanos()))


class StdinPump:
    """What somebody writes into the FIFO, on its way to the command."""

    def __init__(self, fifo: Path, target: int, *, once: bool, is_terminal: bool) -> None:
        os.set_blocking(target, False)
        # Open for writing as well, it never ends, whoever comes and goes.
        mode = os.O_RDONLY if once else os.O_RDWR
        self._source: int | None = _open_fifo(fifo, mode)
        self._target = target
        self._is_terminal = is_terminal
        self._buffer = b""

    @property
    def source(self) -> int | None:
        """Where to read from, if there is room for what would be read."""
        return None if self._buffer else self._source

    @property
    def target(self) -> int | None:
        """Where to write to, if there is anything to write."""
        return self._target if self._buffer else None

    def pump(self) -> None:
        """Pass on what there is; at its end the command's input ends."""
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
        except OSError:  # it does not read any more
            self.close()

    def close(self) -> None:
        """Nothing more will be passed on."""
        if self._source is None:
            return
        os.close(self._source)
        if not self._is_terminal:
            os.close(self._target)
        self._source, self._buffer = None, b""


class ContainerStreams(NamedTuple):
    """The keeper's side."""

    outputs: list[OutputPump]
    input: StdinPump | None
    terminal: int | None

    def resize(self, folder: Path) -> None:
        """Give the terminal, if there is one, the size that a file tells: rows and columns."""
        if self.terminal is None:
            return
        try:
            rows, columns = (folder / WINSIZE).read_text().split()
            size = struct.pack("HHHH", int(rows), int(columns), 0, 0)
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)
        except (OSError, ValueError, struct.error):
            return  # none yet, or one that makes no sense


def open_streams(
    folder: Path, launch: LaunchSpec, log: LogWriter
) -> tuple[ContainerStreams, ChildStreams]:
    """Both sides of what the launch asks for. Raises OSError."""
    if launch.stdin:
        _make_fifo(folder / STDIN)
    return _open_terminal(folder, launch, log) if launch.tty else _open_pipes(folder, launch, log)


def _open_pipes(
    folder: Path, launch: LaunchSpec, log: LogWriter
) -> tuple[ContainerStreams, ChildStreams]:
    out, its_out = os.pipe()
    err, its_err = os.pipe()
    outputs = [OutputPump(out, "stdout", log), OutputPump(err, "stderr", log)]
    if not launch.stdin:
        nothing = os.open(os.devnull, os.O_RDONLY)
        return ContainerStreams(outputs, None, None), ChildStreams(nothing, its_out, its_err, None)
    its_in, into = os.pipe()
    source = StdinPump(folder / STDIN, into, once=launch.stdin_once, is_terminal=False)
    return ContainerStreams(outputs, source, None), ChildStreams(its_in, its_out, its_err, None)


def _open_terminal(
    folder: Path, launch: LaunchSpec, log: LogWriter
) -> tuple[ContainerStreams, ChildStreams]:
    ours, its = os.openpty()
    if launch.user is not None:
        os.fchown(its, launch.user, -1)
    source = None
    if launch.stdin:
        source = StdinPump(folder / STDIN, ours, once=launch.stdin_once, is_terminal=True)
    streams = ContainerStreams([OutputPump(ours, "stdout", log)], source, ours)
    streams.resize(folder)
    return streams, ChildStreams(its, its, its, its)


def _make_fifo(path: Path) -> None:
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        if not stat.S_ISFIFO(path.lstat().st_mode):
            raise


def _open_fifo(path: Path, mode: int) -> int:
    opened = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISFIFO(os.fstat(opened).st_mode):
        os.close(opened)
        raise FileExistsError(f"{path} is no FIFO")
    return opened
