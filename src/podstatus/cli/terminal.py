"""Write text, tables, JSON and YAML to a terminal, a file or a pipe.

On a terminal, control characters in foreign text are escaped.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import msgspec
import yaml
from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.layout import Layout
from rich.segment import ControlType
from rich.text import Text

from podstatus.base.control_chars import ControlCharEscaper, escape_control_chars
from podstatus.cli.render.table_layout import TableLayout
from podstatus.cli.render.tables import Table
from podstatus.kube.scalars.time import Time

_MIN_WIDTH = 40


def write(text: str, *, err: bool = False) -> None:
    """Write text; on a terminal, escape control characters first."""
    stream = sys.stderr if err else sys.stdout
    _write_encoded(stream, escape_control_chars(text) if stream.isatty() else text)


def write_lines(lines: Sequence[Text]) -> None:
    """Write lines, with their styles if the terminal supports color.

    The caller must have escaped control characters.
    """
    if lines:
        _write_styled(*lines, sep="\n")


def redraw(lines: Iterable[Text]) -> None:
    """Replace the content of the terminal; what does not fit is cropped.

    The screen is overwritten, not cleared, and the cursor stays visible: nothing flickers, and
    there is nothing to restore when the process is stopped or killed.
    """
    height = shutil.get_terminal_size().lines - 1
    clear = Control((ControlType.ERASE_IN_LINE, 0))  # the last row, below the layout
    _write_styled(Control.home(), Layout(Group(*lines)), clear, height=height, end="")


def _write_styled(*content: RenderableType, **options: Any) -> None:
    size = shutil.get_terminal_size()
    console = Console(
        width=size.columns,
        height=size.lines,
        force_terminal=True,  # write cursor movements although the output is captured
        color_system="standard" if supports_color(sys.stdout) else None,
        soft_wrap=True,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(*content, **options)
    _write_encoded(sys.stdout, capture.get())


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


class TablePrinter:
    """Writes tables with the same headings as parts of one table: columns only become wider."""

    def __init__(self, min_widths: Mapping[str, int] | None = None) -> None:
        """`min_widths`: minimum column widths by heading."""
        self._min_widths = min_widths or {}
        self._widths: list[int] = []

    def print(self, table: Table) -> None:
        """Write the rows, below the headings if they are the first; one line per row in a pipe."""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        min_widths = self._widths or [self._min_widths.get(name, 0) for name in table.headings]
        layout = TableLayout(table, width, min_widths)
        heading = [] if self._widths else layout.heading()
        write_lines([*heading, *(line for row in layout.rows() for line in row)])
        self._widths = layout.widths


def print_table(table: Table) -> None:
    """Write a table, colored on a terminal."""
    TablePrinter().print(table)
