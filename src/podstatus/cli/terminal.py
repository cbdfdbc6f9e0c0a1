"""Write text, tables, JSON and YAML to a terminal, a file or a pipe.

On a terminal, control characters in foreign text are escaped.
"""

import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, NoReturn, TextIO

import msgspec
import typer
import yaml
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from podstatus.base.control_chars import ControlCharEscaper, escape_control_chars
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
    """Write text; on a terminal, escape control characters first."""
    stream = sys.stderr if err else sys.stdout
    _write_encoded(stream, escape_control_chars(text) if stream.isatty() else text)


def write_lines(lines: Iterable[Line]) -> None:
    """Write lines, with their styles if the terminal supports color.

    The caller must have escaped control characters.
    """
    stream = sys.stdout
    colored = supports_color(stream)
    _write_encoded(stream, "".join(f"{_styled(line, colored=colored)}\n" for line in lines))


def redraw(lines: Iterable[Line]) -> None:
    """Replace the content of the terminal; the lines must fit."""
    colored = supports_color(sys.stdout)
    # Clear each line before writing it: after a full line, clearing would erase its last character.
    text = "".join(f"\x1b[K{_styled(line, colored=colored)}\n" for line in lines)
    _write_encoded(sys.stdout, f"\x1b[H{text}\x1b[J")


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
        _write_encoded(stream, escaper.feed(chunk))
    _write_encoded(stream, escaper.flush())


def _styled(line: Line, *, colored: bool) -> str:
    if not colored:
        return "".join(piece.text for piece in line).rstrip()
    return "".join(
        f"\x1b[{_ANSI_CODES[piece.style]}m{piece.text}\x1b[0m" if piece.style else piece.text
        for piece in line
    )


def _write_encoded(stream: TextIO, text: str) -> None:
    # Not with typer, which strips color codes from files. Characters that the locale lacks are
    # written as escapes.
    stream.flush()
    stream.buffer.write(text.encode(stream.encoding, "backslashreplace"))
    stream.flush()


def write_json(value: object) -> None:
    """Write indented JSON with sorted keys."""
    text = msgspec.json.encode(value, order="sorted", enc_hook=_encode_value)
    write(f"{msgspec.json.format(text, indent=4).decode()}\n")


def write_json_line(value: object) -> None:
    """Write JSON on one line."""
    write(f"{msgspec.json.encode(value, enc_hook=_encode_value).decode()}\n")


def write_yaml(value: object, *, one_of_many: bool = False) -> None:
    """Write YAML; `one_of_many` begins it with a document separator."""
    plain = msgspec.to_builtins(value, enc_hook=_encode_value)
    separator = "---\n" if one_of_many else ""
    write(f"{separator}{yaml.safe_dump(plain, allow_unicode=True)}")


def _encode_value(value: object) -> Any:
    if isinstance(value, Time):
        return str(value)
    raise NotImplementedError(f"cannot encode a {type(value).__name__}")


_GAP = 3


def print_table(table: Table, *, headings: bool = True, min_widths: Sequence[int] = ()) -> None:
    """Write a table, colored on a terminal. Names are never truncated, so they can be copied.

    `min_widths` are the column widths of the rows above.
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
    """True if every name fits the width, but not together with the prose column."""
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
    """Return the table as text. Within `width` a last column of prose is wrapped."""
    widths = [max(pair) for pair in zip_longest(table.widths(), min_widths, fillvalue=0)]
    if width is not None and table.headings[-1] in PROSE_HEADINGS:
        before = sum(widths[:-1]) + _GAP * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(MIN_TEXT_WIDTH, width - before))
    rich = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=headings)
    for index, (heading, wide) in enumerate(zip(table.headings, widths, strict=True)):
        last = index == len(widths) - 1
        rich.add_column(Text(heading, style="bold"), width=wide, no_wrap=not last, overflow="fold")
    for row in table.rows:
        cells = zip(table.headings, row, strict=True)
        rich.add_row(*(Text(text, style=cell_style(heading, text)) for heading, text in cells))
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
    console.print(rich)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error and exit with `code`."""
    write(f"podstatus: {message}\n", err=True)
    raise typer.Exit(code)
