"""Put texts of others on a terminal, or into a file or a pipe."""

import sys
from collections.abc import Iterable
from typing import TextIO

from podstatus.base.harmless import HarmlessBytes, harmless


def show(text: str, *, err: bool = False) -> None:
    """Print it as it is; on a terminal so that it does nothing there but be read."""
    stream = sys.stderr if err else sys.stdout
    _put(stream, harmless(text) if stream.isatty() else text)


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


def _put(stream: TextIO, text: str) -> None:
    # Not by typer, which takes colours out of what goes into a file; and where the locale
    # lacks a character, it is shown by its number.
    stream.flush()
    stream.buffer.write(text.encode(stream.encoding, "backslashreplace"))
    stream.flush()
