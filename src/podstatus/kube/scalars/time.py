"""Times as Kubernetes encodes them: `2024-01-31T09:30:00Z`.

A time is an integer number of nanoseconds, so that nothing that Go keeps is lost: Go parses
fractions of a second, and offsets that lead out of the years 0 to 9999, but prints whole seconds in
UTC. The calendar is the proleptic Gregorian one, as in Go.

Upstream: apimachinery v0.36.4, pkg/apis/meta/v1, time.go and micro_time.go; Go 1.26,
time.Parse. The local zone, in which Go prints before it truncates a time to seconds, is UTC here.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import final

from podstatus.kube.scalars.parse_cache import cached_for_short_strings

_SECOND = 1_000_000_000
_DAY = 86_400
_EXPECTED = "RFC 3339 is expected, such as 2024-01-31T09:30:00"

# As lenient as Go: a single digit for the hour, a comma before the fraction, more than 9 digits.
_TIMESTAMP = r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
_ZONE = r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
_TIME = re.compile(rf"{_TIMESTAMP}(?:[.,]([0-9]+))?{_ZONE}")
# Go accepts a sign as one of the six digits, as long as the number is not negative.
_MICRO_TIME = re.compile(rf"{_TIMESTAMP}[.,]([0-9]{{6}}|\+[0-9]{{5}}|-00000){_ZONE}")


def _days_before_months(february: int) -> tuple[int, ...]:
    return tuple(accumulate((0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))


_COMMON_YEAR = _days_before_months(28)
_LEAP_YEAR = _days_before_months(29)


def _days_before(year: int) -> int:
    """Return the days from 0001-01-01 to the first of that year, negative for earlier years."""
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400


_FIRST = _days_before(0) * _DAY * _SECOND
_END = _days_before(10_000) * _DAY * _SECOND
_UNIX_EPOCH = _days_before(1970) * _DAY * _SECOND


class TimeError(ValueError):
    """The value is not a time."""


@final
class Time(int):
    """Nanoseconds since 0001-01-01T00:00:00Z, which is Go's zero time and means unset."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> "Time":
        """Parse a `metav1.Time` from a JSON value: a string, or null for unset."""
        if isinstance(value, str):
            return _read(value)
        return _unset(value)

    @classmethod
    def from_unix_nanos(cls, nanos: int) -> "Time":
        """Return the time for nanoseconds since the Unix epoch."""
        if not isinstance(nanos, int):
            raise TypeError(
                f"expected integer nanoseconds, got {type(nanos).__name__}; use time.time_ns()"
            )
        return cls(nanos + _UNIX_EPOCH)

    def unix_nanos(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return int(self) - _UNIX_EPOCH

    @property
    def wire(self) -> str | None:
        """The JSON value of a `metav1.Time`: whole seconds in UTC, null if unset."""
        return f"{_format_timestamp(self // _SECOND)}Z" if self else None

    def truncated(self) -> "Time":
        """Return the time after encoding and decoding: whole seconds, or unset.

        Go cannot parse years of more than four digits or below 0, and ignores the error.
        Upstream: Rfc3339Copy, time.go.
        """
        if not _FIRST <= self < _END:
            return UNSET_TIME
        fraction = self % _SECOND
        return Time(self - fraction) if fraction else self

    def __str__(self) -> str:
        seconds, nanos = divmod(int(self), _SECOND)
        return f"{_format_timestamp(seconds)}{f'.{nanos:09}'.rstrip('0') if nanos else ''}Z"

    def __repr__(self) -> str:
        return f"Time.parse({str(self)!r})" if self else "UNSET_TIME"


UNSET_TIME = Time(0)


@final
class MicroTime(int):
    """A time that is encoded with microseconds: exactly six digits after the second.

    Nanoseconds since 0001-01-01T00:00:00Z, as in `Time`.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> "MicroTime":
        """Parse a `metav1.MicroTime` from a JSON value: a string, or null for unset."""
        return cls(_instant(value, _MICRO_TIME) if isinstance(value, str) else _unset(value))

    @classmethod
    def from_unix_nanos(cls, nanos: int) -> "MicroTime":
        return cls(Time.from_unix_nanos(nanos))

    def unix_nanos(self) -> int:
        return Time(self).unix_nanos()

    @property
    def wire(self) -> str | None:
        """The JSON value of a `metav1.MicroTime`: six digits, null if unset."""
        seconds, nanos = divmod(int(self), _SECOND)
        return f"{_format_timestamp(seconds)}.{nanos // 1000:06}Z" if self else None

    def __str__(self) -> str:
        return str(Time(self))

    def __repr__(self) -> str:
        return f"MicroTime.parse({self.wire!r})"


@cached_for_short_strings
def _read(text: str) -> Time:
    return _instant(text, _TIME)


def _unset(value: object) -> Time:
    if value is None:
        return UNSET_TIME
    raise TimeError(f"time is of type {type(value).__name__}; {_EXPECTED}Z")


def _instant(text: str, form: re.Pattern[str]) -> Time:
    match = form.fullmatch(text)
    if match is None:
        rest = ".000000Z" if form is _MICRO_TIME else "Z"
        raise TimeError(f"time {text[:80]!r} cannot be read; {_EXPECTED}{rest}")
    year, month, day, hour, minute, second, fraction, sign, *offset = match.groups(default="")
    seconds = _day(text, year, month, day) * _DAY + _time_of_day(text, hour, minute, second)
    if sign:
        seconds -= _offset(text, sign, *offset)
    return Time(seconds * _SECOND + int(fraction[:9].ljust(9, "0")))


def _day(text: str, year: str, month: str, day: str) -> int:
    """Return the days since 0001-01-01."""
    months = _months(int(year))
    m = _checked_range(text, "month", month, 1, 12)
    d = _checked_range(text, "day", day, 1, months[m] - months[m - 1])
    return _days_before(int(year)) + months[m - 1] + d - 1


def _time_of_day(text: str, hour: str, minute: str, second: str) -> int:
    h = _checked_range(text, "hour", hour, 0, 23)
    m = _checked_range(text, "minute", minute, 0, 59)
    return (h * 60 + m) * 60 + _checked_range(text, "second", second, 0, 59)


def _offset(text: str, sign: str, hour: str, minute: str) -> int:
    # Go accepts 24 hours and 60 minutes.
    h = _checked_range(text, "hour of the offset", hour, 0, 24)
    m = _checked_range(text, "minute of the offset", minute, 0, 60)
    return (h * 60 + m) * (-60 if sign == "-" else 60)


def _checked_range(text: str, field_name: str, digits: str, low: int, high: int) -> int:
    number = int(digits)
    if low <= number <= high:
        return number
    raise TimeError(f"time {text[:80]!r} has {field_name} {number}; {low} to {high} is expected")


def _months(year: int) -> tuple[int, ...]:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LEAP_YEAR if leap else _COMMON_YEAR


@lru_cache(maxsize=4096)
def _format_timestamp(seconds: int) -> str:
    """Return date and time for seconds since 0001-01-01T00:00:00Z."""
    day, clock = divmod(seconds, _DAY)
    return f"{_date(day)}T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"


@lru_cache(maxsize=1024)
def _date(day: int) -> str:
    year = day * 400 // 146_097 + 1  # days in 400 years; correct, or one year too early
    year += day >= _days_before(year + 1)
    of_year = day - _days_before(year)
    months = _months(year)
    month = bisect_right(months, of_year)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{of_year - months[month - 1] + 1:02}"
