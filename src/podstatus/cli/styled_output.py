"""Write tables and styled lines, with rich."""

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.layout import Layout
from rich.segment import ControlType
from rich.text import Text

from podstatus.cli.render.table_layout import TableLayout
from podstatus.cli.render.tables import Table
from podstatus.cli.terminal import supports_color, write_encoded


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
    write_encoded(sys.stdout, capture.get())


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
