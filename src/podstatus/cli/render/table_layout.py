"""Lay out a table as lines of text, for a pipe or within the width of a terminal.

Not by `rich.table`, which truncates or folds the cells of a table that is too wide: here columns
that do not fit are continued on the next line, so that names can be copied.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import msgspec
from rich.cells import cell_len
from rich.text import Text

from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.render.tables import PROSE_HEADINGS, Table, cell_style
from podstatus.cli.render.wrap import wrap_text

_GAP, _NARROW_GAP = 3, 1
_INDENT = 4
"""Indent of columns that are continued below their row."""
_MIN_TEXT_WIDTH = 24
"""Minimum width of a wrapped last column."""


class _ColumnGroup(msgspec.Struct, frozen=True):
    """Columns on the same line."""

    columns: range
    indent: int
    gap: int


def shorten_columns(table: Table, width: int, min_widths: Mapping[str, int]) -> Table:
    """Return the table with shorter names, so that a row fits into a line of `width`.

    `min_widths` has the columns to shorten, in this order, and how far. A name is shortened in its
    middle: pods of one owner differ at the end. Rows may still be too wide.
    """
    rows = [list(row) for row in table.rows]
    for heading, min_width in min_widths.items():
        if heading not in table.headings:
            continue
        column = table.headings.index(heading)
        widths = [max(map(cell_len, cells)) for cells in zip(table.headings, *rows, strict=True)]
        if table.headings[-1] in PROSE_HEADINGS:
            widths[-1] = min(widths[-1], _MIN_TEXT_WIDTH)
        excess = sum(widths) + _NARROW_GAP * (len(widths) - 1) - width
        if excess > 0:
            limit = max(min_width, widths[column] - excess)
            for row in rows:
                row[column] = _shorten(row[column], limit)
    return Table(table.headings, tuple(tuple(row) for row in rows))


def _shorten(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


class TableLayout:
    """The lines of a table; without a `width` each row is one line.

    Within a width, a last column of prose is wrapped, and columns that do not fit are continued on
    the next line. A single cell that is wider is not truncated.
    """

    def __init__(
        self, table: Table, width: int | None = None, min_widths: Sequence[int] = ()
    ) -> None:
        self._headings = table.headings
        self._cells = [[_one_line(cell) for cell in row] for row in table.rows]
        columns = zip(self._headings, *self._cells, strict=True)
        natural = [max(map(cell_len, column)) for column in columns]
        self.widths = [max(pair) for pair in zip_longest(natural, min_widths, fillvalue=0)]
        """The widths of the columns, at least `min_widths`."""
        self._is_prose = width is not None and self._headings[-1] in PROSE_HEADINGS
        self._groups, self._last_width = _fit_columns(self.widths, width, is_prose=self._is_prose)

    def heading(self) -> list[Text]:
        """Return the lines of the headings."""
        return self._lines(self._headings, ["bold"] * len(self._headings))

    def rows(self) -> Iterator[list[Text]]:
        """Yield the lines of each row."""
        for row in self._cells:
            styles = [cell_style(*pair) for pair in zip(self._headings, row, strict=True)]
            yield self._lines(row, styles)

    def within(self, height: int) -> list[Text]:
        """Return the lines that fit into `height`; the last one counts the omitted rows."""
        lines = self.heading()
        for left, row in zip(range(len(self._cells), 0, -1), self.rows(), strict=True):
            if len(lines) + len(row) + (left > 1) > height:
                return [*lines, Text(f"and {left} more", "dim")]
            lines += row
        return lines

    def _lines(self, cells: Sequence[str], styles: Sequence[str]) -> list[Text]:
        *names, last = cells
        first, *more = (wrap_text(last, self._last_width) if self._is_prose else [last]) or [""]
        lines = [self._line(group, [*names, first], styles) for group in self._groups]
        empty = [""] * len(names)
        lines += [self._line(self._groups[-1], [*empty, text], styles) for text in more]
        return lines[:1] + [line for line in lines[1:] if line.plain.strip()]

    def _line(self, group: _ColumnGroup, cells: Sequence[str], styles: Sequence[str]) -> Text:
        line = Text(" " * group.indent)
        for i in group.columns:
            line.append(cells[i], styles[i])
            line.append(" " * (self.widths[i] + group.gap - cell_len(cells[i])))
        line.rstrip()
        return line


def _fit_columns(
    widths: Sequence[int], width: int | None, *, is_prose: bool
) -> tuple[list[_ColumnGroup], int]:
    """Group the columns by line, and return the width of the last column.

    Narrow gaps are preferred to an additional line per row.
    """
    if width is None:
        return [_ColumnGroup(range(len(widths)), 0, _GAP)], widths[-1]
    last = min(widths[-1], _MIN_TEXT_WIDTH) if is_prose else widths[-1]
    groups = min((_split([*widths[:-1], last], width, gap) for gap in (_GAP, _NARROW_GAP)), key=len)
    *before, _ = groups[-1].columns
    left = width - groups[-1].indent - sum(widths[i] + groups[-1].gap for i in before)
    return groups, min(widths[-1], max(1, left))


def _split(widths: Sequence[int], width: int, gap: int) -> list[_ColumnGroup]:
    groups: list[_ColumnGroup] = []
    begin, indent, used = 0, 0, 0
    for index, wide in enumerate(widths):
        if index > begin and used + wide > width:
            groups.append(_ColumnGroup(range(begin, index), indent, gap))
            begin, indent, used = index, _INDENT, _INDENT
        used += wide + gap
    return [*groups, _ColumnGroup(range(begin, len(widths)), indent, gap)]


def _one_line(text: str) -> str:
    return escape_control_chars(" ".join(text.split()))
