"""Put tables on a terminal, or into a file or a pipe."""

import io
import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from podstatus.agent.screen import may_colour, show_lines
from podstatus.agent.table_lines import table_lines
from podstatus.agent.tables import LEAST_TEXT, PROSE, Table, harmless_table, style_of

_GAP = 3


def print_table(table: Table, *, headings: bool = True, least: Sequence[int] = ()) -> None:
    """Print it, coloured on a terminal; names are never cut, so that they can be copied.

    `least` are the widths of columns that rows above have.
    """
    out = sys.stdout
    width = shutil.get_terminal_size().columns if out.isatty() else None
    if out.isatty():
        table = harmless_table(table)
    if width is not None and not least and _is_too_wide(table, width):
        show_lines(table_lines(table, width, sys.maxsize))
        return
    out.write(render(table, width, color=may_colour(out), headings=headings, least=least))
    out.flush()


def _is_too_wide(table: Table, width: int) -> bool:
    """Whether its prose has no place beside the names, each of which has one."""
    *names, text = table.widths()
    needed = sum(names) + _GAP * len(names) + min(text, LEAST_TEXT)
    return table.headings[-1] in PROSE and max(names) <= width < needed


def render(
    table: Table,
    width: int | None,
    *,
    color: bool = False,
    headings: bool = True,
    least: Sequence[int] = (),
) -> str:
    """The lines. Within a width the last column is folded, if it is prose; all else is whole."""
    widths = [max(pair) for pair in zip_longest(table.widths(), least, fillvalue=0)]
    if width is not None and table.headings[-1] in PROSE:
        before = sum(widths[:-1]) + _GAP * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(LEAST_TEXT, width - before))
    shown = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=headings)
    for index, (heading, wide) in enumerate(zip(table.headings, widths, strict=True)):
        last = index == len(widths) - 1
        shown.add_column(Text(heading, style="bold"), width=wide, no_wrap=not last, overflow="fold")
    for row in table.rows:
        cells = zip(table.headings, row, strict=True)
        shown.add_row(*(Text(text, style=style_of(heading, text)) for heading, text in cells))
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
