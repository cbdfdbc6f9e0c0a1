"""Ages as `kubectl get` prints them, in two or three digits: `3m20s`, `5d`.

Upstream: HumanDuration, apimachinery v0.36.4, pkg/util/duration/duration.go.
"""

from podstatus.kube.scalars.time import Time

_SECOND = 1_000_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR = 365 * _DAY
_MAX_NANOS = 2**63 - 1
"""Go's durations are 64-bit nanoseconds: the maximum is 292 years."""

_UNKNOWN = "<unknown>"


def format_age(since: Time, now: Time) -> str:
    """Format the time since `since`; `<unknown>` if it is unset."""
    return human_duration(now - since) if since else _UNKNOWN


def human_duration(nanos: int) -> str:
    """Format nanoseconds with two or three significant digits."""
    # Tolerate clock skew of almost two seconds before a negative duration is invalid.
    if nanos <= -2 * _SECOND:
        return "<invalid>"
    seconds = max(0, min(nanos, _MAX_NANOS)) // _SECOND
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, large, large_name, small, small_name in _STEPS:
        if seconds < limit:
            return _format_units(seconds, large, large_name, small, small_name)
    return f"{seconds // _YEAR}y"


_STEPS = (
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""For durations up to the first value: the unit, and the smaller unit beside it, if any."""


def _format_units(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(seconds, large)
    beside = rest // small if small else 0
    return f"{whole}{large_name}{beside}{small_name}" if beside else f"{whole}{large_name}"
