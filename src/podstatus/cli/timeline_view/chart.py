"""Draw the history of a pod or node on one time axis, as lines of styled text for a terminal.

               10:00:00    10:00:10    10:00:20
    phase      ░█ Running █████████████████████
    Ready      ░ False ░░░░░░░░░░░░░░█ True ███
    app        ░▓▒▒▒▒▓▒ CrashLoopBackOff ▒█████
      restarts      ↻1                   ↻2
    events     •• !

A column shows the shortest of its states, so that short states are visible as well; the last
column shows the current state. Foreign text is escaped, and printed only if each of its characters
is one column wide.
"""

from collections.abc import Sequence
from itertools import groupby

import msgspec
from rich.text import Text

from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.timeline_view.intervals import Chart, ChartRow, Interval, Mark
from podstatus.cli.timeline_view.load_rows import draw_levels
from podstatus.cli.timeline_view.severities import Severity
from podstatus.cli.timeline_view.time_axis import TimeAxis, format_duration, format_timestamp

_Piece = tuple[str, str]
"""Text and its style."""
_MAX_NAME_WIDTH = 25
"""The length of the longest condition type that a kubelet sets."""
_NAMES_SHARE = 5
"""Row names take at most 1/5 of the width."""
_MIN_COLUMNS = 16
_RESTARTS = "  restarts"
_CUT = ".."


class _SeverityStyle(msgspec.Struct, frozen=True):
    """How a severity is drawn."""

    label: str
    color: str
    """From the 16-color palette, which terminals adapt to their background."""
    block: str
    letter: str


_SEVERITY_STYLES = {
    Severity.GOOD: _SeverityStyle("good", "green", "█", "="),
    Severity.WAITING: _SeverityStyle("waiting", "yellow", "░", "."),
    Severity.BACK_OFF: _SeverityStyle("back-off", "red", "▒", "~"),
    Severity.BAD: _SeverityStyle("failed", "red", "▓", "x"),
    Severity.DONE: _SeverityStyle("completed", "cyan", "─", "-"),
    Severity.UNKNOWN: _SeverityStyle("unknown", "magenta", "?", "?"),
    Severity.AWAY: _SeverityStyle("agent away", "dim", "·", ","),
}


class Symbols(msgspec.Struct, frozen=True, kw_only=True):
    """The characters to draw with."""

    bars: dict[Severity, str]
    restart: str
    event: str
    times: str
    warning: str = "!"
    tick: str
    levels: str
    """From the lowest load to the highest."""

    @property
    def all(self) -> str:
        """All non-ASCII characters in use, to check the encoding of the terminal."""
        signs = (self.restart, self.event, self.times, self.tick, self.levels)
        return "".join((*self.bars.values(), *signs))


BLOCKS = Symbols(
    bars={severity: style.block for severity, style in _SEVERITY_STYLES.items()},
    restart="↻",
    event="•",
    times="×",  # noqa: RUF001 - the multiplication sign
    tick="╷",
    levels="▁▂▃▄▅▆▇█",
)
ASCII = Symbols(
    bars={severity: style.letter for severity, style in _SEVERITY_STYLES.items()},
    restart="^",
    event="*",
    times="x",
    tick="|",
    levels="0123456789",
)


def draw_timeline(chart: Chart, width: int, symbols: Symbols = BLOCKS) -> list[Text]:
    """Return the lines of the chart, at most `width` wide, but with at least 16 time columns."""
    max_name = max(len(_RESTARTS), min(_MAX_NAME_WIDTH, width // _NAMES_SHARE))
    names = [_name(row.name, max_name) for row in chart.rows]
    names += [load.name for load in chart.loads]
    margin = max(map(len, [*names, _RESTARTS])) + 1
    axis = TimeAxis(begin=chart.begin, end=chart.end, columns=max(_MIN_COLUMNS, width - margin))
    lines = [*_time_range(axis, width), Text(), *_scale(axis, margin, symbols)]
    for row in (row for row in chart.rows if not row.is_events):
        lines += _row(row, _name(row.name, max_name), axis, margin, symbols)
    for load in chart.loads:
        label = (f"{load.name:<{margin}}", "bold")
        lines.append(Text.assemble(label, *draw_levels(load, axis, symbols.levels)))
    for row in (row for row in chart.rows if row.is_events):
        lines += _row(row, row.name, axis, margin, symbols)
    notes = (*_omitted_conditions(chart, width), *_load_note(chart, width))
    return [*lines, Text(), *_legend(chart, width, symbols), *notes]


def _time_range(axis: TimeAxis, width: int) -> list[Text]:
    span = f"{format_timestamp(axis.begin)} to {format_timestamp(axis.end)}"
    length, step = format_duration(axis.end - axis.begin), format_duration(axis.step)
    return _wrapped(f"{span} ({length}; a column is {step})", width)


def _scale(axis: TimeAxis, margin: int, symbols: Symbols) -> list[Text]:
    labels = ticks = " " * margin
    for tick in axis.ticks():
        at = margin + tick.column
        labels = f"{labels:<{at}}{tick.label}"
        ticks = f"{ticks:<{at}}{symbols.tick}"
    return [Text(labels, "dim"), Text(ticks, "dim")]


def _row(row: ChartRow, name: str, axis: TimeAxis, margin: int, symbols: Symbols) -> list[Text]:
    label = (f"{name:<{margin}}", "bold")
    if row.is_events:
        return [Text.assemble(label, *_events(row.marks, axis, symbols))]
    lines = [Text.assemble(label, *_bars(row.intervals, axis, symbols))]
    if row.marks:
        lines.append(Text(f"{_RESTARTS:<{margin}}{_restarts(row.marks, axis, symbols)}"))
    return lines


def _bars(intervals: Sequence[Interval], axis: TimeAxis, symbols: Symbols) -> list[_Piece]:
    pieces: list[_Piece] = []
    for interval, cells in groupby(_cells(intervals, axis)):
        count = len(list(cells))
        pieces += [(" " * count, "")] if interval is None else _bar(interval, count, symbols)
    return pieces


def _cells(intervals: Sequence[Interval], axis: TimeAxis) -> list[Interval | None]:
    """The interval that each column shows."""
    cells: list[Interval | None] = [None] * axis.columns
    for interval in intervals:
        last = axis.last_column(interval.begin, interval.end)
        for column in range(axis.column(interval.begin), last + 1):
            current = cells[column]
            if current is None or _precedence(interval) >= _precedence(current):
                cells[column] = interval
    if intervals and intervals[-1].end >= axis.end:
        cells[-1] = intervals[-1]
    return cells


def _precedence(interval: Interval) -> tuple[int, Severity]:
    return interval.begin - interval.end, interval.severity


def _bar(interval: Interval, count: int, symbols: Symbols) -> list[_Piece]:
    """The bar, labelled if the label fits. Labels have no color: yellow is unreadable on white."""
    sign, color = symbols.bars[interval.severity], _SEVERITY_STYLES[interval.severity].color
    text = interval.text
    rest = count - len(text) - 3
    if rest < 1 or not _is_plain(text):
        return [(sign * count, color)]
    return [(sign, color), (f" {text} ", ""), (sign * rest, color)]


def _restarts(marks: Sequence[Mark], axis: TimeAxis, symbols: Symbols) -> str:
    """Restart counts; later ones take precedence, others shrink to the symbol or are omitted."""
    cells = [" "] * axis.columns
    free = axis.columns
    for mark in reversed(marks):
        number = mark.text if _is_plain(mark.text) else ""
        texts = (f"{symbols.restart}{number}", symbols.restart)
        at = min(axis.column(mark.at), max(0, axis.columns - len(texts[0])))  # fits at the end
        text = next((text for text in texts if at + len(text) <= free), "")
        cells[at : at + len(text)] = text
        free = at - 1 if len(text) > 1 else min(free, at) if text else free
    return "".join(cells).rstrip()


def _events(marks: Sequence[Mark], axis: TimeAxis, symbols: Symbols) -> list[_Piece]:
    warns: dict[int, bool] = {}
    for mark in marks:
        column = axis.column(mark.at)
        warns[column] = warns.get(column, False) or mark.is_warning
    pieces: list[_Piece] = []
    at = 0
    for column in sorted(warns):
        sign = (symbols.warning, "red") if warns[column] else (symbols.event, "")
        pieces += [(" " * (column - at), ""), sign]
        at = column + 1
    return pieces


def _legend(chart: Chart, width: int, symbols: Symbols) -> list[Text]:
    """The meaning of the symbols in use."""
    severities = {interval.severity for row in chart.rows for interval in row.intervals}
    marks = [mark for row in chart.rows if row.is_events for mark in row.marks]
    restarts = any(row.marks for row in chart.rows if not row.is_events)
    entries = [
        *(
            (symbols.bars[s], it.color, it.label)
            for s, it in _SEVERITY_STYLES.items()
            if s in severities
        ),
        *[(symbols.restart, "", "restart")] * restarts,
        *[(symbols.event, "", "event")] * any(not mark.is_warning for mark in marks),
        *[(symbols.warning, "red", "warning")] * any(mark.is_warning for mark in marks),
        *[(symbols.levels, "", "0 to 100% used")] * bool(chart.loads),
    ]
    lines = [Text()]
    for sign, color, word in entries:
        entry = Text.assemble((sign, color), (f" {word}   ", "dim"))
        if len(lines[-1]) + len(entry) > width + len("   "):
            lines.append(Text())
        lines[-1].append_text(entry)
    return [line for line in lines if line]


def _omitted_conditions(chart: Chart, width: int) -> list[Text]:
    """A note about the conditions without a row."""
    notes = []
    if chart.always_true:
        notes.append(f"Always True: {', '.join(map(_name, chart.always_true))}.")
    if chart.same_as_ready:
        notes.append(f"Same as Ready: {', '.join(map(_name, chart.same_as_ready))}.")
    if chart.always_false:
        notes.append(f"Always False: {', '.join(map(_name, chart.always_false))}.")
    return _wrapped(" ".join(notes), width)


def _load_note(chart: Chart, width: int) -> list[Text]:
    """The last and the highest load of each resource, which columns show only roughly."""
    if not chart.loads:
        return []
    return _wrapped(f"Used: {'; '.join(load.summary for load in chart.loads)}.", width)


def _wrapped(text: str, width: int) -> list[Text]:
    return [Text(line, "dim") for line in wrap_text(text, width)]


def _name(text: str, max_width: int = _MAX_NAME_WIDTH) -> str:
    """A name of single-width characters, shortened to `max_width` where it says least.

    `unrea..NoExecute` for a taint, `..AgentStopped` for a condition of a domain.
    """
    plain = "".join(char if _is_plain(char) else "?" for char in text)
    if len(plain) <= max_width:
        return plain
    key, _, effect = plain.rpartition(":")
    room = max_width - len(_CUT) - len(effect)
    if key and room > 0:
        return f"{key[:room]}{_CUT}{effect}"
    domain, _, last = plain.rpartition("/")
    short = f"{_CUT}{last}" if domain else plain
    return short if len(short) <= max_width else f"{short[: max_width - len(_CUT)]}{_CUT}"


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
