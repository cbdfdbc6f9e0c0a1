"""Health of a server as its clients see it: last response, clock skew, request metrics.

The Date header has whole seconds and a response takes time, so each response allows a range of
skews; the reported skew is the smallest that one of the newest responses allows. A slow response
never looks like a wrong clock.

Upstream: requestResult and requestLatency, component-base/metrics/prometheus/restclient, and their
callers in client-go/rest/request.go, v0.36.4.
"""

from collections import deque
from email.utils import parsedate_to_datetime

from podstatus.base.clock import Clock
from podstatus.base.metric_values import CounterVec, HistogramVec

_SECOND = 1_000_000_000
_MAX_SAMPLES = 16
"""Responses that are evaluated. A busy agent gets as many within a minute."""
_SAMPLE_LIFETIME_NS = 60 * _SECOND
"""Maximum age of a response, for an agent with few requests: the server's clock may have been set
since."""


class ClockSkew:
    """The clock skew between server and client, as far as known. For one event loop.

    Server times are compared with the client's monotonic clock, so a jump of the client's wall
    clock shows at once.
    """

    def __init__(self) -> None:
        self._bounds: deque[tuple[int, float, float]] = deque(maxlen=_MAX_SAMPLES)
        """Time of a response in ns, and the range of the monotonic minus the server's time in s."""
        self._date = ""

    def seconds(self, clock: Clock) -> float | None:
        """Return the absolute skew; None if no response had a valid Date header."""
        offset = (clock.now() - clock.monotonic()) / _SECOND
        return min(
            (_min_skew(offset + low, offset + high) for _, low, high in self._bounds), default=None
        )

    def record(self, date: str | None, *, requested_at: int, now: int) -> None:
        """Record the Date header of a response; both times are monotonic nanoseconds."""
        # Many responses have the same date; one of them is sufficient.
        if not date or date == self._date:
            return
        self._date = date
        try:
            server_time = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        self._prune(now)
        # The header is a whole second, and was set between the request and now.
        self._bounds.append(
            (now, requested_at / _SECOND - server_time - 1, now / _SECOND - server_time)
        )

    def _prune(self, now: int) -> None:
        bounds = self._bounds
        while bounds and now - bounds[0][0] >= _SAMPLE_LIFETIME_NS:
            bounds.popleft()


def _min_skew(lowest: float, highest: float) -> float:
    """Return the smallest absolute value in this range."""
    return max(0.0, lowest, -highest)


REQUEST_BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Upstream's buckets, in seconds."""
NO_RESPONSE = "<error>"
"""Upstream's code label for a request without a response: a reason would be unbounded."""
_MAX_LABEL_SETS = 100
"""Limits label values: a server may send any status code."""


class RequestMetrics:
    """Request metrics. Written in one event loop, readable from any thread."""

    def __init__(self) -> None:
        self.responses = CounterVec(max_series=_MAX_LABEL_SETS)
        """By `code`, `method`, `host`: all requests, including watches."""
        self.seconds = HistogramVec(*REQUEST_BOUNDS, max_series=_MAX_LABEL_SETS)
        """By `verb`, `host`: from the start of a call to the end of its response or failure. Not
        for watches."""

    def record_response(self, code: int | None, method: str, host: str) -> None:
        """Count a request by the code of its response; None if there was no response."""
        self.responses.inc(NO_RESPONSE if code is None else str(code), method, host)


def server_host(server: str) -> str:
    """Return host and port of a URL, as in upstream's label; never with a password."""
    return server.partition("://")[2].partition("/")[0].rpartition("@")[2]


class ServerHealth:
    """The health of a server, from the latest request or watch data."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._skew = ClockSkew()
        self._last_response = clock.monotonic()
        self._is_reachable = False
        self.requests = RequestMetrics()

    @property
    def is_reachable(self) -> bool:
        """Whether the last request got a response; False before the first response."""
        return self._is_reachable

    @property
    def age_seconds(self) -> float:
        """Return the seconds since the last response, or since creation if there was none."""
        return (self._clock.monotonic() - self._last_response) / _SECOND

    @property
    def clock_skew_seconds(self) -> float | None:
        """Return the clock skew from the responses' Date headers; None if unknown."""
        return self._skew.seconds(self._clock)

    def monotonic(self) -> int:
        """Return the monotonic time in ns, for `record_date`."""
        return self._clock.monotonic()

    def record_date(self, date: str | None, requested_at: int) -> None:
        """Record the Date header of a response to a request sent at `requested_at` (ns)."""
        self._skew.record(date, requested_at=requested_at, now=self._clock.monotonic())

    def record_response(self) -> None:
        """Record a response or watch data, including error responses."""
        self._last_response = self._clock.monotonic()
        self._is_reachable = True

    def record_failure(self) -> None:
        """Record a request without a response, or a broken connection."""
        self._is_reachable = False
