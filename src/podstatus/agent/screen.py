"""Put texts of others on a terminal, or into a file or a pipe."""

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from podstatus.agent.styled_text import Line
from podstatus.base.terminal import HarmlessBytes, harmless

_NARROWEST = 40
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}


def show(text: str, *, err: bool = False) -> None:
    """Print it as it is; on a terminal so that it does nothing there but be read."""
    stream = sys.stderr if err else sys.stdout
    _put(stream, harmless(text) if stream.isatty() else text)


def show_lines(lines: Iterable[Line]) -> None:
    """Print lines that hold nothing to obey, in their styles if that may be."""
    stream = sys.stdout
    coloured = may_colour(stream)
    _put(stream, "".join(f"{_styled(line, coloured=coloured)}\n" for line in lines))


def redraw(lines: Iterable[Line]) -> None:
    """Print lines that fit a terminal in place of all that it shows."""
    coloured = may_colour(sys.stdout)
    # A line is cleared before it is written: after a full one its last character would go, too.
    text = "".join(f"\x1b[K{_styled(line, coloured=coloured)}\n" for line in lines)
    _put(sys.stdout, f"\x1b[H{text}\x1b[J")


def may_colour(stream: TextIO) -> bool:
    """Whether it is a terminal, and nobody minds. See https://no-color.org."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not refused


def can_show(characters: str) -> bool:
    """Whether what is printed can hold these characters."""
    try:
        characters.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def screen_width(wished: int = 0) -> int:
    """As many columns as somebody wishes, or those of the terminal; of most if there is none."""
    return max(_NARROWEST, wished or shutil.get_terminal_size().columns)


def show_bytes(pieces: Iterable[bytes]) -> None:
    """Print what comes, as it comes: unchanged, but for a terminal."""
    stream = sys.stdout
    if not stream.isatty():
        for piece in pieces:
            stream.buffer.write(piece)
            stream.flush()
        return
    shown = HarmlessBytes()
    for piece in pieces:
        _put(stream, shown.feed(piece))
    _put(stream, shown.end())


def _styled(line: Line, *, coloured: bool) -> str:
    if not coloured:
        return "".join(piece.text for piece in line).rstrip()
    return "".join(
        f"\x1b[{_CODES[piece.style]}m{piece.text}\x1b[0m" if piece.style else piece.text
        for piece in line
    )


def _put(stream: TextIO, text: str) -> None:
    # Not by typer, which takes colours out of what goes into a file; and where the locale
    # lacks a character, it is shown by its number.
    stream.flush()
    stream.buffer.write(text.encode(stream.encoding, "backslashreplace"))
    stream.flush()
