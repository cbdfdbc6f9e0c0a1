"""Map times to the columns of a time axis, and choose its labels. Times are UTC."""

from collections.abc import Iterator

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.observe.summary import health

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND
_MINUTE, _HOUR, _DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
_STEPS = (
    *(n * MILLISECOND for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)
"""Possible distances between two labels: round numbers of each unit."""
_GAP = 2


class Tick(msgspec.Struct, frozen=True):
    """A label, and its first column."""

    column: int
    label: str


class TimeAxis(msgspec.Struct, frozen=True, kw_only=True):
    """A time span divided into columns. Times are nanoseconds since the Unix epoch."""

    begin: int
    end: int
    columns: int

    @property
    def span(self) -> int:
        """The length of the axis in nanoseconds, at least 1."""
        return max(1, self.end - self.begin)

    @property
    def step(self) -> float:
        """The length of a column in nanoseconds."""
        return self.span / self.columns

    def column(self, at: int) -> int:
        """Return the column of a time, limited to the axis."""
        # Integer arithmetic: a float cannot represent nanoseconds since the epoch exactly.
        return max(0, min(self.columns - 1, (at - self.begin) * self.columns // self.span))

    def last_column(self, begin: int, end: int) -> int:
        """Return the last column of an interval; `end` is exclusive."""
        return max(self.column(begin), self.column(end - 1))

    def ticks(self) -> Iterator[Tick]:
        """Yield labels at round times, as many as fit."""
        crosses = _day(self.begin) != _day(self.end)
        every = next(filter(lambda step: self._fits(step, crosses=crosses), _STEPS), _STEPS[-1])
        at = -(-self.begin // every) * every
        while at <= self.end:
            label = _label(at, every, crosses=crosses)
            if self.column(at) + len(label) <= self.columns:
                yield Tick(self.column(at), label)
            at += every

    def _fits(self, every: int, *, crosses: bool) -> bool:
        width = len(_label(self.begin, every, crosses=crosses)) + _GAP
        return every / self.step >= width


def format_timestamp(at: int) -> str:
    """Format a time with milliseconds: `2026-11-15T10:00:00.123Z`."""
    return f"{_seconds(at)}.{at // MILLISECOND % 1000:03}Z"


def format_time_of_day(at: int) -> str:
    """Format a time without date and zone: `10:00:00.123`."""
    return format_timestamp(at)[11:-1]


def format_duration(nanos: float) -> str:
    """Format a duration with its two largest units: `1 min 30 s`, `3.9 s`, `40 ms`."""
    if nanos < SECOND:
        return f"{nanos / MILLISECOND:.3g} ms"
    if nanos < 10 * SECOND:
        return f"{nanos / SECOND:.2g} s"
    return health.format_duration(nanos / SECOND)


def _label(at: int, every: int, *, crosses: bool) -> str:
    if every >= _DAY:
        return _day(at)
    clock = format_time_of_day(at)
    label = clock[:5] if every >= _MINUTE else clock[:8] if every >= SECOND else clock
    return f"{_day(at)[5:]} {label}" if crosses else label


def _day(at: int) -> str:
    return _seconds(at)[:10]


def _seconds(at: int) -> str:
    return str(Time.from_unix_nanos(at // SECOND * SECOND)).removesuffix("Z")
