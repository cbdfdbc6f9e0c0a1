"""Lay out a table as lines that fit a terminal, for `podstatus watch`."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from rich.cells import cell_len, set_cell_size

from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.render.styled_text import Line, Piece
from podstatus.cli.render.tables import MIN_TEXT_WIDTH, PROSE_HEADINGS, Table, cell_style
from podstatus.cli.render.wrap import wrap_text
from podstatus.web.v1.wire import PodView

_GAP, _NARROW_GAP = 3, 1
_INDENT = 4
"""Indent of columns that are continued below their row."""


class _ColumnGroup(msgspec.Struct, frozen=True):
    """Columns on the same line."""

    columns: range
    indent: int
    gap: int


def table_lines(table: Table, width: int, height: int) -> list[Line]:
    """Return the headings and rows within `width` and `height`; `and N more` if rows are omitted.

    Columns that do not fit are continued on the next line; a last column of prose is wrapped.
    """
    rows = [[_one_line(cell) for cell in row] for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip(table.headings, *rows, strict=True)]
    is_prose = table.headings[-1] in PROSE_HEADINGS
    parts = _group_columns(_min_widths(widths, is_prose=is_prose), width)
    if is_prose:
        *before, _ = parts[-1].columns
        left = width - parts[-1].indent - sum(widths[i] + parts[-1].gap for i in before)
        widths[-1] = min(widths[-1], max(1, left))
    bold = ["bold"] * len(widths)
    heading = [_line(part, table.headings, bold, widths, width) for part in parts]
    row_lines: list[list[Line]] = []
    for row in rows:
        styles = [cell_style(*pair) for pair in zip(table.headings, row, strict=True)]
        texts = wrap_text(row[-1], widths[-1]) if is_prose else [row[-1]]
        first, *more = texts or [""]
        lines = [_line(part, [*row[:-1], first], styles, widths, width) for part in parts]
        empty = [""] * (len(row) - 1)
        lines += [_line(parts[-1], [*empty, text], styles, widths, width) for text in more]
        row_lines.append(lines)
    return [*heading, *_fit_rows(row_lines, height - len(heading))]


def _min_widths(widths: Sequence[int], *, is_prose: bool) -> list[int]:
    """The minimum widths of the columns; prose can be wrapped."""
    last = min(widths[-1], MIN_TEXT_WIDTH) if is_prose else widths[-1]
    return [*widths[:-1], last]


def _group_columns(widths: Sequence[int], width: int) -> list[_ColumnGroup]:
    """Prefer narrow gaps to an additional line per row."""
    return min((_split(widths, width, gap) for gap in (_GAP, _NARROW_GAP)), key=len)


def _split(widths: Sequence[int], width: int, gap: int) -> list[_ColumnGroup]:
    parts: list[_ColumnGroup] = []
    begin, indent, used = 0, 0, 0
    for index, wide in enumerate(widths):
        if index > begin and used + wide > width:
            parts.append(_ColumnGroup(range(begin, index), indent, gap))
            begin, indent, used = index, _INDENT, _INDENT
        used += wide + gap
    return [*parts, _ColumnGroup(range(begin, len(widths)), indent, gap)]


def _fit_rows(rows: Sequence[list[Line]], height: int) -> list[Line]:
    if sum(map(len, rows)) <= height:
        return [line for row in rows for line in row]
    lines: list[Line] = []
    for number, row in enumerate(rows):
        if len(lines) + len(row) >= height:
            return [*lines, (Piece(f"and {len(rows) - number} more", "dim"),)]
        lines += row
    return lines


def count_health(pods: Iterable[PodView]) -> str:
    """Count pods by health: `3 pods: 2 healthy, 1 crashing`."""
    states = Counter(pod.health.state.value for pod in pods)
    total = states.total()
    counts = ", ".join(f"{count} {state}" for state, count in states.most_common())
    return f"{total} pod{'' if total == 1 else 's'}{f': {counts}' if counts else ''}"


def _line(
    part: _ColumnGroup,
    cells: Sequence[str],
    styles: Sequence[str],
    widths: Sequence[int],
    width: int,
) -> Line:
    pieces = [Piece(" " * part.indent)] if part.indent else []
    left = width - part.indent
    for i in part.columns:
        whole = f"{set_cell_size(cells[i], widths[i])}{' ' * part.gap}"
        text = set_cell_size(whole, min(left, widths[i] + part.gap))
        pieces.append(Piece(text, styles[i]))
        left -= cell_len(text)
        if left <= 0:
            break
    return tuple(pieces)


def _one_line(text: str) -> str:
    return escape_control_chars(" ".join(text.split()))
