"""Write text and bytes to a terminal, a file or a pipe.

On a terminal, control characters in foreign text are escaped.
"""

import os
import select
import shutil
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from podstatus.base.control_chars import ControlCharEscaper, escape_control_chars
from podstatus.cli.render.message import wrap_message

_MIN_WIDTH = 40


def write(text: str, *, err: bool = False) -> None:
    """Write text; on a terminal, escape control characters first."""
    stream = sys.stderr if err else sys.stdout
    write_encoded(stream, escape_control_chars(text) if stream.isatty() else text)


def write_message(text: str, *, err: bool = False) -> None:
    """Write lines of prose; on a terminal, wrapped between words and around commands."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        width = terminal_width()
        text = "\n".join(wrap_message(line, width) for line in text.splitlines())
    write(f"{text}\n", err=err)


def exit_with_reader() -> None:
    """End the process when the reader of standard output closes the pipe, as `head` does.

    For output without end: otherwise the pipe is only known to be closed at the next write.
    """
    with suppress(OSError):  # in a test, standard output may be no file
        descriptor = sys.stdout.fileno()
        threading.Thread(target=_exit_on_hangup, args=(descriptor,), daemon=True).start()


def _exit_on_hangup(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hangups are always reported
    poll.poll()
    os._exit(0)


def supports_color(stream: TextIO) -> bool:
    """True for a terminal, unless NO_COLOR is set or TERM is dumb. See https://no-color.org."""
    disabled = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not disabled


def can_encode(characters: str) -> bool:
    """True if the encoding of standard output has these characters."""
    try:
        characters.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def terminal_width(requested: int = 0) -> int:
    """Return `requested` columns, or those of the terminal if 0 (80 without one); at least 40."""
    return max(_MIN_WIDTH, requested or shutil.get_terminal_size().columns)


def write_bytes(chunks: Iterable[bytes]) -> None:
    """Write chunks as they arrive; on a terminal, escape control characters."""
    stream = sys.stdout
    if not stream.isatty():
        for chunk in chunks:
            stream.buffer.write(chunk)
            stream.flush()
        return
    escaper = ControlCharEscaper()
    for chunk in chunks:
        write_encoded(stream, escaper.feed(chunk))
    write_encoded(stream, escaper.flush())


def write_encoded(stream: TextIO, text: str) -> None:
    """Write text without escaping control characters."""
    # Not with typer, which strips color codes from files. Characters that the locale lacks are
    # written as escapes.
    stream.flush()
    stream.buffer.write(text.encode(stream.encoding, "backslashreplace"))
    stream.flush()
