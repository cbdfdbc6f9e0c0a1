"""How long ago something was, in the few figures that `kubectl get` shows: `3m20s`, `5d`.

Upstream: HumanDuration, apimachinery v0.36.4, pkg/util/duration/duration.go.
"""

from podstatus.kube.scalars.time import Time

_SECOND = 1_000_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR = 365 * _DAY
_MAX_NANOS = 2**63 - 1
"""Go's durations are 64-bit nanoseconds: nothing is longer than 292 years."""

_UNKNOWN = "<unknown>"


def format_age(since: Time, now: Time) -> str:
    """How long ago that was; `<unknown>` if it is unset."""
    return human_duration(now - since) if since else _UNKNOWN


def human_duration(nanos: int) -> str:
    """A duration in two or three significant figures."""
    # Clocks may differ by almost two seconds before a duration is called impossible.
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
"""Up to which duration which unit is shown, and which smaller one beside it, if any."""


def _format_units(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(seconds, large)
    beside = rest // small if small else 0
    return f"{whole}{large_name}{beside}{small_name}" if beside else f"{whole}{large_name}"
