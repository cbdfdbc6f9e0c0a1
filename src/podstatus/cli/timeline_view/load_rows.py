"""The load of a node over time, as rows of a chart: a column is as high as its highest load.

    cpu      ▁▁▂▇█▇▂▁      ▁▁▂
    memory   ▃▃▃▃▄▄▄▄      ▃▃▃

A gap in the measurement is blank.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import msgspec

from podstatus.cli.timeline_view.time_axis import SECOND, TimeAxis
from podstatus.observe.history.node_tables import NodeLoadSample

_ALWAYS_SHOWN = ("cpu", "memory", "disk")
_SHOWN_IF_HIGH = ("inodes", "pids", "pods")
"""Resources that rarely run out."""
_HIGH, _CRITICAL = 0.8, 0.9
_MAX_HELD_NANOS = 13 * 60 * SECOND
"""A sample holds until the next one, which is written after ten minutes at the latest; it has the
time of a measurement, which may be two and a half minutes old."""


class Level(msgspec.Struct, frozen=True):
    """A used fraction from `begin` to `end`, in nanoseconds since the Unix epoch."""

    begin: int
    end: int
    fraction: float


class LoadRow(msgspec.Struct, frozen=True):
    """The load of one resource over time."""

    name: str
    levels: tuple[Level, ...]

    @property
    def summary(self) -> str:
        """The last and the highest level: `cpu 12 %, at most 97 %`."""
        highest = max(level.fraction for level in self.levels)
        return f"{self.name} {self.levels[-1].fraction:.0%}, at most {highest:.0%}"


def load_rows(
    samples: Sequence[NodeLoadSample], away: Iterable[tuple[int, int]], *, begin: int, end: int
) -> tuple[LoadRow, ...]:
    """Return the rows of a time span; `away`: when nothing was measured, in order."""
    gaps = list(away)
    held = [(sample, *_held(sample, after, gaps, end)) for sample, after in _with_next(samples)]
    rows = []
    for name in (*_ALWAYS_SHOWN, *_SHOWN_IF_HIGH):
        levels = tuple(
            Level(max(begin, since), min(end, until), fraction)
            for sample, since, until in held
            if until > begin and since < end and (fraction := getattr(sample, name)) is not None
        )
        if levels and (name in _ALWAYS_SHOWN or max(it.fraction for it in levels) >= _HIGH):
            rows.append(LoadRow(name, levels))
    return tuple(rows)


def draw_levels(row: LoadRow, axis: TimeAxis, signs: str) -> Iterator[tuple[str, str]]:
    """Yield the row as pieces of text with their style; `signs`: from the lowest level on."""
    for fraction, columns in groupby(_columns(row.levels, axis)):
        count = len(list(columns))
        if fraction is None:
            yield " " * count, ""
        else:
            sign = signs[min(len(signs) - 1, int(fraction * len(signs)))]
            yield sign * count, _color(fraction)


def _with_next(
    samples: Sequence[NodeLoadSample],
) -> Iterator[tuple[NodeLoadSample, NodeLoadSample | None]]:
    yield from pairwise(samples)
    if samples:
        yield samples[-1], None


def _held(
    sample: NodeLoadSample, after: NodeLoadSample | None, gaps: Iterable[tuple[int, int]], end: int
) -> tuple[int, int]:
    """From when until when a sample holds: it is the average of the minute before it."""
    until = min(end if after is None else after.at, sample.at + _MAX_HELD_NANOS)
    first_gap = next((begin for begin, _ in gaps if sample.at <= begin < until), until)
    return sample.at, max(sample.at, first_gap)


def _columns(levels: Iterable[Level], axis: TimeAxis) -> list[float | None]:
    """The highest load of each column; None: not measured."""
    columns: list[float | None] = [None] * axis.columns
    for level in levels:
        last = axis.last_column(level.begin, max(level.end, level.begin + 1))
        for column in range(axis.column(level.begin), last + 1):
            columns[column] = max(columns[column] or 0.0, level.fraction)
    return columns


def _color(fraction: float) -> str:
    return "red" if fraction >= _CRITICAL else "yellow" if fraction >= _HIGH else "green"
