"""Spans of time as Go prints them: `10s`, `1m20s`, `5m0s`, `1.5s`.

Upstream: Duration.String, time.go of Go 1.26.
"""

_SECOND = 1_000_000_000


def go_duration(seconds: float) -> str:
    """What Go prints for this span."""
    nanos = round(seconds * _SECOND)
    if nanos < 0:
        return f"-{go_duration(-seconds)}"
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if 0 < nanos < size * 1_000:
            return f"{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * _SECOND)
    text = f"{_decimal(rest, _SECOND)}s"
    if minutes:
        text = f"{minutes % 60}m{text}"
    return f"{minutes // 60}h{text}" if minutes >= 60 else text


def _decimal(nanos: int, size: int) -> str:
    whole, part = divmod(nanos, size)
    digits = str(part).zfill(len(str(size)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
