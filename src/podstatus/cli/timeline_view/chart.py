"""The life of a pod drawn on one axis of time, as lines of styled text for a terminal.

               10:00:00    10:00:10    10:00:20
    phase      ░█ Running █████████████████████
    Ready      ░ False ░░░░░░░░░░░░░░█ True ███
    app        ░▓▒▒▒▒▓▒ CrashLoopBackOff ▒█████
      restarts      ↻1                   ↻2
    events     •• !

A column shows the shortest of the states in it, so that what lasted a moment is seen as well; the
last one shows how it is now. Text of others is shown, never obeyed, and never takes more columns
than it seems to.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from podstatus.cli.render.styled_text import Line, Piece
from podstatus.cli.timeline_view.intervals import Chart, ChartRow, Interval, Mark, Severity
from podstatus.cli.timeline_view.time_axis import TimeAxis, format_duration, format_timestamp

_MAX_NAME_WIDTH = 25
"""As wide as the name of the longest condition that a kubelet sets."""
_NAMES_SHARE = 5
"""Of the width, names take one part at most."""
_MIN_COLUMNS = 16
_RESTARTS = "  restarts"
_LABELS = {
    Severity.GOOD: "good",
    Severity.WAITING: "waiting",
    Severity.BACK_OFF: "back-off",
    Severity.BAD: "failed",
    Severity.DONE: "over",
    Severity.UNKNOWN: "unknown",
    Severity.AWAY: "agent away",
}
_COLORS = {
    Severity.GOOD: "green",
    Severity.WAITING: "yellow",
    Severity.BACK_OFF: "red",
    Severity.BAD: "red",
    Severity.DONE: "cyan",
    Severity.UNKNOWN: "magenta",
    Severity.AWAY: "dim",
}
"""Of the sixteen that every terminal has made to be seen on its own background."""


class Symbols(msgspec.Struct, frozen=True, kw_only=True):
    """The characters to draw with."""

    bars: dict[Severity, str]
    restart: str
    event: str
    times: str
    warning: str = "!"
    tick: str

    @property
    def all(self) -> str:
        """For those who have to know whether a terminal has them."""
        return "".join((*self.bars.values(), self.restart, self.event, self.times, self.tick))


BLOCKS = Symbols(
    bars={
        Severity.GOOD: "█",
        Severity.WAITING: "░",
        Severity.BACK_OFF: "▒",
        Severity.BAD: "▓",
        Severity.DONE: "─",
        Severity.UNKNOWN: "?",
        Severity.AWAY: "·",
    },
    restart="↻",
    event="•",
    times="×",  # noqa: RUF001 - it is the sign
    tick="╷",
)
ASCII = Symbols(
    bars={
        Severity.GOOD: "=",
        Severity.WAITING: ".",
        Severity.BACK_OFF: "~",
        Severity.BAD: "x",
        Severity.DONE: "-",
        Severity.UNKNOWN: "?",
        Severity.AWAY: ",",
    },
    restart="^",
    event="*",
    times="x",
    tick="|",
)


def draw_timeline(chart: Chart, width: int, symbols: Symbols = BLOCKS) -> list[Line]:
    """The lines, none wider than the width; a narrow one still gets a few columns of time."""
    room = max(len(_RESTARTS), min(_MAX_NAME_WIDTH, width // _NAMES_SHARE))
    names = [_name(row.name, room) for row in chart.rows]
    margin = max(map(len, [*names, _RESTARTS])) + 1
    axis = TimeAxis(begin=chart.begin, end=chart.end, columns=max(_MIN_COLUMNS, width - margin))
    lines = [*_time_range(axis, width), (), *_scale(axis, margin, symbols)]
    for name, row in zip(names, chart.rows, strict=True):
        lines += _row(row, name, axis, margin, symbols)
    return [*lines, (), *_legend(chart, width, symbols), *_omitted_conditions(chart, width)]


def _time_range(axis: TimeAxis, width: int) -> list[Line]:
    words = (
        f"{format_timestamp(axis.begin)} to",
        format_timestamp(axis.end),
        f"({format_duration(axis.end - axis.begin)};",
        f"a column is {format_duration(axis.step)})",
    )
    return _wrapped(words, width, " ")


def _scale(axis: TimeAxis, margin: int, symbols: Symbols) -> list[Line]:
    labels = ticks = " " * margin
    for tick in axis.ticks():
        at = margin + tick.column
        labels = f"{labels:<{at}}{tick.label}"
        ticks = f"{ticks:<{at}}{symbols.tick}"
    return [(Piece(labels, "dim"),), (Piece(ticks, "dim"),)]


def _row(row: ChartRow, name: str, axis: TimeAxis, margin: int, symbols: Symbols) -> list[Line]:
    label = Piece(f"{name:<{margin}}", "bold")
    if row.is_events:
        return [(label, *_events(row.marks, axis, symbols))]
    lines: list[Line] = [(label, *_bars(row.intervals, axis, symbols))]
    if row.marks:
        lines.append((Piece(f"{_RESTARTS:<{margin}}"), _restarts(row.marks, axis, symbols)))
    return lines


def _bars(intervals: Sequence[Interval], axis: TimeAxis, symbols: Symbols) -> list[Piece]:
    pieces = []
    for spell, cells in groupby(_cells(intervals, axis)):
        count = len(list(cells))
        pieces += [Piece(" " * count)] if spell is None else _bar(spell, count, symbols)
    return pieces


def _cells(intervals: Sequence[Interval], axis: TimeAxis) -> list[Interval | None]:
    """What each column shows."""
    cells: list[Interval | None] = [None] * axis.columns
    for spell in intervals:
        last = axis.last_column(spell.begin, spell.end)
        for column in range(axis.column(spell.begin), last + 1):
            known = cells[column]
            if known is None or _precedence(spell) >= _precedence(known):
                cells[column] = spell
    if intervals and intervals[-1].end >= axis.end:
        cells[-1] = intervals[-1]
    return cells


def _precedence(interval: Interval) -> tuple[int, Severity]:
    return interval.begin - interval.end, interval.severity


def _bar(interval: Interval, count: int, symbols: Symbols) -> list[Piece]:
    """The bar, with what it stands for if there is room. In words only the bar is coloured:
    yellow words cannot be read on white."""
    sign, colour = symbols.bars[interval.severity], _COLORS[interval.severity]
    text = interval.text
    rest = count - len(text) - 3
    if rest < 1 or not _is_plain(text):
        return [Piece(sign * count, colour)]
    return [Piece(sign, colour), Piece(f" {text} "), Piece(sign * rest, colour)]


def _restarts(marks: Sequence[Mark], axis: TimeAxis, symbols: Symbols) -> Piece:
    """The numbers of restarts, the later ones first: what does not fit is a sign, or nothing."""
    cells = [" "] * axis.columns
    free = axis.columns
    for mark in reversed(marks):
        at = axis.column(mark.at)
        number = mark.text if _is_plain(mark.text) else ""
        texts = (f"{symbols.restart}{number}", symbols.restart)
        text = next((text for text in texts if at + len(text) <= free), "")
        cells[at : at + len(text)] = text
        free = at - 1 if len(text) > 1 else min(free, at) if text else free
    return Piece("".join(cells).rstrip(), "")


def _events(marks: Sequence[Mark], axis: TimeAxis, symbols: Symbols) -> list[Piece]:
    warns: dict[int, bool] = {}
    for mark in marks:
        column = axis.column(mark.at)
        warns[column] = warns.get(column, False) or mark.is_warning
    pieces, at = [], 0
    for column in sorted(warns):
        sign = Piece(symbols.warning, "red") if warns[column] else Piece(symbols.event)
        pieces += [Piece(" " * (column - at)), sign]
        at = column + 1
    return pieces


def _legend(chart: Chart, width: int, symbols: Symbols) -> list[Line]:
    """What the signs mean that are there."""
    tones = {spell.severity for row in chart.rows for spell in row.intervals}
    marks = [mark for row in chart.rows if row.is_events for mark in row.marks]
    restarts = any(row.marks for row in chart.rows if not row.is_events)
    told = [
        *((symbols.bars[t], _COLORS[t], word) for t, word in _LABELS.items() if t in tones),
        *[(symbols.restart, "", "restart")] * restarts,
        *[(symbols.event, "", "event")] * any(not mark.is_warning for mark in marks),
        *[(symbols.warning, "red", "warning")] * any(mark.is_warning for mark in marks),
    ]
    lines: list[list[Piece]] = [[]]
    for sign, colour, word in told:
        pieces = [Piece(sign, colour), Piece(f" {word}   ", "dim")]
        if sum(len(piece.text) for piece in (*lines[-1], *pieces)) > width + len("   "):
            lines.append([])
        lines[-1] += pieces
    return [tuple(line) for line in lines if line]


def _omitted_conditions(chart: Chart, width: int) -> list[Line]:
    """What the conditions without a row were."""
    told = []
    if chart.always_true:
        told.append(f"True throughout: {', '.join(map(_name, chart.always_true))}.")
    if chart.same_as_ready:
        told.append(f"As Ready: {', '.join(map(_name, chart.same_as_ready))}.")
    return _wrapped(" ".join(told).split(" "), width, " ") if told else []


def _wrapped(words: Iterable[str], width: int, between: str) -> list[Line]:
    lines = [""]
    for word in words:
        longer = f"{lines[-1]}{between}{word}" if lines[-1] else word
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return [(Piece(line, "dim"),) for line in lines if line]


def _name(text: str, max_width: int = _MAX_NAME_WIDTH) -> str:
    """A name that takes as many columns as it has characters."""
    plain = "".join(char if _is_plain(char) else "?" for char in text)
    return plain if len(plain) <= max_width else f"{plain[: max_width - 2]}.."


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
