"""Lengths of time as scripts write them: 500ms, 3s, 1.5m, 1h."""

import re

DURATION_PATTERN = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m|h)"
"""A number and a unit, as groups; a century at most, so that nothing overflows."""

_UNITS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_DURATION = re.compile(DURATION_PATTERN)


def to_nanos(number: str, unit: str) -> int:
    """The nanoseconds of the two groups of LENGTH."""
    return round(float(number) * _UNITS[unit])


def parse_duration(text: str) -> int | None:
    """The nanoseconds that a text says, None if it is no length."""
    match = _DURATION.fullmatch(text)
    return to_nanos(match[1], match[2]) if match else None
