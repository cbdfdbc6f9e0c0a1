"""Write text, tables, JSON and YAML to a terminal, a file or a pipe.

On a terminal, control characters in foreign text are escaped.
"""

import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, TextIO

import msgspec
import yaml
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from podstatus.base.terminal import ControlCharEscaper, escape_control_chars
from podstatus.cli.render.styled_text import Line
from podstatus.cli.render.table_lines import table_lines
from podstatus.cli.render.tables import (
    MIN_TEXT_WIDTH,
    PROSE_HEADINGS,
    Table,
    cell_style,
    escape_table,
)
from podstatus.kube.scalars.time import Time

_MIN_WIDTH = 40
_ANSI_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}


def write(text: str, *, err: bool = False) -> None:
    """Print it as it is; on a terminal so that it does nothing there but be read."""
    stream = sys.stderr if err else sys.stdout
    _write_encoded(stream, escape_control_chars(text) if stream.isatty() else text)


def write_lines(lines: Iterable[Line]) -> None:
    """Print lines that hold nothing to obey, in their styles if that may be."""
    stream = sys.stdout
    coloured = supports_color(stream)
    _write_encoded(stream, "".join(f"{_styled(line, colored=coloured)}\n" for line in lines))


def redraw(lines: Iterable[Line]) -> None:
    """Print lines that fit a terminal in place of all that it shows."""
    coloured = supports_color(sys.stdout)
    # A line is cleared before it is written: after a full one its last character would go, too.
    text = "".join(f"\x1b[K{_styled(line, colored=coloured)}\n" for line in lines)
    _write_encoded(sys.stdout, f"\x1b[H{text}\x1b[J")


def supports_color(stream: TextIO) -> bool:
    """Whether it is a terminal, and nobody minds. See https://no-color.org."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not refused


def can_encode(characters: str) -> bool:
    """Whether what is printed can hold these characters."""
    try:
        characters.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def terminal_width(requested: int = 0) -> int:
    """As many columns as somebody wishes, or those of the terminal; of most if there is none."""
    return max(_MIN_WIDTH, requested or shutil.get_terminal_size().columns)


def write_bytes(chunks: Iterable[bytes]) -> None:
    """Print what comes, as it comes: unchanged, but for a terminal."""
    stream = sys.stdout
    if not stream.isatty():
        for piece in chunks:
            stream.buffer.write(piece)
            stream.flush()
        return
    shown = ControlCharEscaper()
    for piece in chunks:
        _write_encoded(stream, shown.feed(piece))
    _write_encoded(stream, shown.flush())


def _styled(line: Line, *, colored: bool) -> str:
    if not colored:
        return "".join(piece.text for piece in line).rstrip()
    return "".join(
        f"\x1b[{_ANSI_CODES[piece.style]}m{piece.text}\x1b[0m" if piece.style else piece.text
        for piece in line
    )


def _write_encoded(stream: TextIO, text: str) -> None:
    # Not by typer, which takes colours out of what goes into a file; and where the locale
    # lacks a character, it is shown by its number.
    stream.flush()
    stream.buffer.write(text.encode(stream.encoding, "backslashreplace"))
    stream.flush()


def write_json(value: object) -> None:
    """Print it over several lines, keys by name."""
    text = msgspec.json.encode(value, order="sorted", enc_hook=_encode_value)
    write(f"{msgspec.json.format(text, indent=4).decode()}\n")


def write_json_line(value: object) -> None:
    """Print it on one line."""
    write(f"{msgspec.json.encode(value, enc_hook=_encode_value).decode()}\n")


def write_yaml(value: object, *, one_of_many: bool = False) -> None:
    """Print it; one of many begins with the line that separates them."""
    plain = msgspec.to_builtins(value, enc_hook=_encode_value)
    begin = "---\n" if one_of_many else ""
    write(f"{begin}{yaml.safe_dump(plain, allow_unicode=True)}")


def _encode_value(value: object) -> Any:
    if isinstance(value, Time):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} does not travel")


_GAP = 3


def print_table(table: Table, *, headings: bool = True, min_widths: Sequence[int] = ()) -> None:
    """Print it, coloured on a terminal; names are never cut, so that they can be copied.

    `min_widths` are the widths of columns that rows above have.
    """
    out = sys.stdout
    width = shutil.get_terminal_size().columns if out.isatty() else None
    if out.isatty():
        table = escape_table(table)
    if width is not None and not min_widths and _is_too_wide(table, width):
        write_lines(table_lines(table, width, sys.maxsize))
        return
    out.write(
        render(table, width, color=supports_color(out), headings=headings, min_widths=min_widths)
    )
    out.flush()


def _is_too_wide(table: Table, width: int) -> bool:
    """Whether its prose has no place beside the names, each of which has one."""
    *names, text = table.widths()
    needed = sum(names) + _GAP * len(names) + min(text, MIN_TEXT_WIDTH)
    return table.headings[-1] in PROSE_HEADINGS and max(names) <= width < needed


def render(
    table: Table,
    width: int | None,
    *,
    color: bool = False,
    headings: bool = True,
    min_widths: Sequence[int] = (),
) -> str:
    """The lines. Within a width the last column is folded, if it is prose; all else is whole."""
    widths = [max(pair) for pair in zip_longest(table.widths(), min_widths, fillvalue=0)]
    if width is not None and table.headings[-1] in PROSE_HEADINGS:
        before = sum(widths[:-1]) + _GAP * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(MIN_TEXT_WIDTH, width - before))
    shown = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=headings)
    for index, (heading, wide) in enumerate(zip(table.headings, widths, strict=True)):
        last = index == len(widths) - 1
        shown.add_column(Text(heading, style="bold"), width=wide, no_wrap=not last, overflow="fold")
    for row in table.rows:
        cells = zip(table.headings, row, strict=True)
        shown.add_row(*(Text(text, style=cell_style(heading, text)) for heading, text in cells))
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=sum(widths) + _GAP * len(widths),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(shown)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())
