"""Durations as Go parses and prints them: `10s`, `1m30s`, `1.5h`.

Upstream: ParseDuration and Duration.String, package time of Go 1.26; metav1.Duration,
apimachinery v0.36.4.
"""

import re

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\N{MICRO SIGN}s": 1_000,
    "\N{GREEK SMALL LETTER MU}s": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_UNIT_PATTERN = "|".join(sorted(_UNITS, key=len, reverse=True))
_PART = re.compile(rf"(\d+\.?\d*|\.\d+)({_UNIT_PATTERN})", re.ASCII)
_MAX_NANOS = 2**63 - 1


class DurationError(ValueError):
    """The text is not a duration."""


def parse_duration(text: str) -> float:
    """Return the seconds of a duration, possibly negative. Raises DurationError."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    parts = list(_PART.finditer(unsigned))
    if not parts or "".join(part[0] for part in parts) != unsigned:
        raise DurationError(f"{text!r} is not a duration such as 10s or 1m30s")
    nanos = sum(_nanos(number, _UNITS[unit]) for number, unit in (part.groups() for part in parts))
    if nanos > _MAX_NANOS:
        raise DurationError(f"{text!r} exceeds the maximum duration of 292 years")
    return -nanos / 1e9 if text[0] == "-" else nanos / 1e9


def format_duration(seconds: float) -> str:
    """Format seconds as Go does: `1m30s`, `4h0m0s`, `1.5s`, `100ms`."""
    nanos = round(abs(seconds) * 1e9)
    sign = "-" if seconds < 0 else ""
    if nanos == 0:
        return "0s"
    if nanos < _UNITS["s"]:
        unit = next(unit for unit in ("ms", "us", "ns") if nanos >= _UNITS[unit])
        return f"{sign}{_decimal(nanos, _UNITS[unit])}{'µs' if unit == 'us' else unit}"
    minutes, rest = divmod(nanos, _UNITS["m"])
    text = f"{_decimal(rest, _UNITS['s'])}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(nanos: int, unit: int) -> str:
    whole, fraction = divmod(nanos, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{fraction:0{digits}}".rstrip("0").rstrip(".") if fraction else str(whole)


def _nanos(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole or "0") * unit + int(fraction or "0") * unit // int("1" + "0" * len(fraction))
