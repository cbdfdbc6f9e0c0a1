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
from podstatus.cli.timeline_view.intervals import Chart, Mark, Row, Spell, Tone
from podstatus.cli.timeline_view.time_axis import Axis, length, stamp

_WIDEST_NAME = 25
"""As wide as the name of the longest condition that a kubelet sets."""
_NAMES_SHARE = 5
"""Of the width, names take one part at most."""
_LEAST_COLUMNS = 16
_RESTARTS = "  restarts"
_MEANING = {
    Tone.GOOD: "good",
    Tone.WAITING: "waiting",
    Tone.BACK_OFF: "back-off",
    Tone.BAD: "failed",
    Tone.DONE: "over",
    Tone.UNKNOWN: "unknown",
    Tone.AWAY: "agent away",
}
_COLOURS = {
    Tone.GOOD: "green",
    Tone.WAITING: "yellow",
    Tone.BACK_OFF: "red",
    Tone.BAD: "red",
    Tone.DONE: "cyan",
    Tone.UNKNOWN: "magenta",
    Tone.AWAY: "dim",
}
"""Of the sixteen that every terminal has made to be seen on its own background."""


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """The characters to draw with."""

    bars: dict[Tone, str]
    restart: str
    event: str
    times: str
    warning: str = "!"
    tick: str

    @property
    def all(self) -> str:
        """For those who have to know whether a terminal has them."""
        return "".join((*self.bars.values(), self.restart, self.event, self.times, self.tick))


BLOCKS = Signs(
    bars={
        Tone.GOOD: "█",
        Tone.WAITING: "░",
        Tone.BACK_OFF: "▒",
        Tone.BAD: "▓",
        Tone.DONE: "─",
        Tone.UNKNOWN: "?",
        Tone.AWAY: "·",
    },
    restart="↻",
    event="•",
    times="×",  # noqa: RUF001 - it is the sign
    tick="╷",
)
ASCII = Signs(
    bars={
        Tone.GOOD: "=",
        Tone.WAITING: ".",
        Tone.BACK_OFF: "~",
        Tone.BAD: "x",
        Tone.DONE: "-",
        Tone.UNKNOWN: "?",
        Tone.AWAY: ",",
    },
    restart="^",
    event="*",
    times="x",
    tick="|",
)


def draw_timeline(chart: Chart, width: int, signs: Signs = BLOCKS) -> list[Line]:
    """The lines, none wider than the width; a narrow one still gets a few columns of time."""
    room = max(len(_RESTARTS), min(_WIDEST_NAME, width // _NAMES_SHARE))
    names = [_name(row.name, room) for row in chart.rows]
    margin = max(map(len, [*names, _RESTARTS])) + 1
    axis = Axis(begin=chart.begin, end=chart.end, columns=max(_LEAST_COLUMNS, width - margin))
    lines = [*_span(axis, width), (), *_scale(axis, margin, signs)]
    for name, row in zip(names, chart.rows, strict=True):
        lines += _row(row, name, axis, margin, signs)
    return [*lines, (), *_legend(chart, width, signs), *_left_out(chart, width)]


def _span(axis: Axis, width: int) -> list[Line]:
    words = (
        f"{stamp(axis.begin)} to",
        stamp(axis.end),
        f"({length(axis.end - axis.begin)};",
        f"a column is {length(axis.step)})",
    )
    return _wrapped(words, width, " ")


def _scale(axis: Axis, margin: int, signs: Signs) -> list[Line]:
    labels = ticks = " " * margin
    for tick in axis.ticks():
        at = margin + tick.column
        labels = f"{labels:<{at}}{tick.label}"
        ticks = f"{ticks:<{at}}{signs.tick}"
    return [(Piece(labels, "dim"),), (Piece(ticks, "dim"),)]


def _row(row: Row, name: str, axis: Axis, margin: int, signs: Signs) -> list[Line]:
    label = Piece(f"{name:<{margin}}", "bold")
    if row.is_events:
        return [(label, *_events(row.marks, axis, signs))]
    lines: list[Line] = [(label, *_bars(row.spells, axis, signs))]
    if row.marks:
        lines.append((Piece(f"{_RESTARTS:<{margin}}"), _restarts(row.marks, axis, signs)))
    return lines


def _bars(spells: Sequence[Spell], axis: Axis, signs: Signs) -> list[Piece]:
    pieces = []
    for spell, cells in groupby(_cells(spells, axis)):
        count = len(list(cells))
        pieces += [Piece(" " * count)] if spell is None else _bar(spell, count, signs)
    return pieces


def _cells(spells: Sequence[Spell], axis: Axis) -> list[Spell | None]:
    """What each column shows."""
    cells: list[Spell | None] = [None] * axis.columns
    for spell in spells:
        last = axis.last_column(spell.begin, spell.end)
        for column in range(axis.column(spell.begin), last + 1):
            known = cells[column]
            if known is None or _stands_out(spell) >= _stands_out(known):
                cells[column] = spell
    if spells and spells[-1].end >= axis.end:
        cells[-1] = spells[-1]
    return cells


def _stands_out(spell: Spell) -> tuple[int, Tone]:
    return spell.begin - spell.end, spell.tone


def _bar(spell: Spell, count: int, signs: Signs) -> list[Piece]:
    """The bar, with what it stands for if there is room. In words only the bar is coloured:
    yellow words cannot be read on white."""
    sign, colour = signs.bars[spell.tone], _COLOURS[spell.tone]
    text = spell.text
    rest = count - len(text) - 3
    if rest < 1 or not _is_plain(text):
        return [Piece(sign * count, colour)]
    return [Piece(sign, colour), Piece(f" {text} "), Piece(sign * rest, colour)]


def _restarts(marks: Sequence[Mark], axis: Axis, signs: Signs) -> Piece:
    """The numbers of restarts, the later ones first: what does not fit is a sign, or nothing."""
    cells = [" "] * axis.columns
    free = axis.columns
    for mark in reversed(marks):
        at = axis.column(mark.at)
        number = mark.text if _is_plain(mark.text) else ""
        texts = (f"{signs.restart}{number}", signs.restart)
        text = next((text for text in texts if at + len(text) <= free), "")
        cells[at : at + len(text)] = text
        free = at - 1 if len(text) > 1 else min(free, at) if text else free
    return Piece("".join(cells).rstrip(), "")


def _events(marks: Sequence[Mark], axis: Axis, signs: Signs) -> list[Piece]:
    warns: dict[int, bool] = {}
    for mark in marks:
        column = axis.column(mark.at)
        warns[column] = warns.get(column, False) or mark.is_warning
    pieces, at = [], 0
    for column in sorted(warns):
        sign = Piece(signs.warning, "red") if warns[column] else Piece(signs.event)
        pieces += [Piece(" " * (column - at)), sign]
        at = column + 1
    return pieces


def _legend(chart: Chart, width: int, signs: Signs) -> list[Line]:
    """What the signs mean that are there."""
    tones = {spell.tone for row in chart.rows for spell in row.spells}
    marks = [mark for row in chart.rows if row.is_events for mark in row.marks]
    restarts = any(row.marks for row in chart.rows if not row.is_events)
    told = [
        *((signs.bars[t], _COLOURS[t], word) for t, word in _MEANING.items() if t in tones),
        *[(signs.restart, "", "restart")] * restarts,
        *[(signs.event, "", "event")] * any(not mark.is_warning for mark in marks),
        *[(signs.warning, "red", "warning")] * any(mark.is_warning for mark in marks),
    ]
    lines: list[list[Piece]] = [[]]
    for sign, colour, word in told:
        pieces = [Piece(sign, colour), Piece(f" {word}   ", "dim")]
        if sum(len(piece.text) for piece in (*lines[-1], *pieces)) > width + len("   "):
            lines.append([])
        lines[-1] += pieces
    return [tuple(line) for line in lines if line]


def _left_out(chart: Chart, width: int) -> list[Line]:
    """What the conditions without a row were."""
    told = []
    if chart.throughout:
        told.append(f"True throughout: {', '.join(map(_name, chart.throughout))}.")
    if chart.as_ready:
        told.append(f"As Ready: {', '.join(map(_name, chart.as_ready))}.")
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


def _name(text: str, most: int = _WIDEST_NAME) -> str:
    """A name that takes as many columns as it has characters."""
    plain = "".join(char if _is_plain(char) else "?" for char in text)
    return plain if len(plain) <= most else f"{plain[: most - 2]}.."


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
