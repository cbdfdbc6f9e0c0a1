"""Durations in the format of Prometheus: `30s`, `2m`, `1h30m`, `1d`.

Each unit at most once, the larger ones first, whole numbers; 0 needs no unit.
"""

import re

_UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile("".join(rf"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS))
_MAX_SECONDS = 365 * 86_400.0


class RuleDurationError(ValueError):
    """The text is not a valid duration."""


def parse_duration(text: str) -> float:
    """Return the duration in seconds. Raises RuleDurationError."""
    if text == "0":
        return 0.0
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise RuleDurationError(f"{text!r} is not a duration such as 30s, 2m or 1h30m")
    counts = [0 if count is None else int(count) for count in match.groups()]
    seconds = sum(map(float.__mul__, _UNITS.values(), map(float, counts)))
    if seconds > _MAX_SECONDS:
        raise RuleDurationError(f"{text!r} is longer than a year")
    return seconds
