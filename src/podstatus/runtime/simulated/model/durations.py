"""Durations as scripts write them: 500ms, 3s, 1.5m, 1h."""

import re

DURATION_PATTERN = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m|h)"
"""Groups: number, unit. The number is limited to about a century, so that nothing overflows."""

_UNITS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_DURATION = re.compile(DURATION_PATTERN)


def to_nanos(number: str, unit: str) -> int:
    """Convert the two groups of DURATION_PATTERN to nanoseconds."""
    return round(float(number) * _UNITS[unit])


def parse_duration(text: str) -> int | None:
    """Return the duration in nanoseconds; None if the text is not a duration."""
    match = _DURATION.fullmatch(text)
    return to_nanos(match[1], match[2]) if match else None
