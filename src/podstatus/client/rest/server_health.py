"""Health of a server as its clients see it: last response, clock skew, request metrics.

The Date header has whole seconds and a response takes time, so each response allows a range of
skews; the reported skew is the smallest that one of the newest responses allows. A slow response
never looks like a wrong clock.

Upstream: requestResult and requestLatency, component-base/metrics/prometheus/restclient, and their
callers in client-go/rest/request.go, v0.36.4.
"""

from collections import deque
from email.utils import parsedate_to_datetime

from podstatus.base.clock import Clock, Elapsed
from podstatus.base.metrics import CounterVec, HistogramVec

_SECOND = 1_000_000_000
_MAX_SAMPLES = 16
"""Answers that count. A busy agent gets as many within a minute."""
_SAMPLE_LIFETIME_NS = 60 * _SECOND
"""How long they do, for one that has little to ask: a clock may be set meanwhile."""


class ClockSkew:
    """The difference, as far as it is known. For one event loop."""

    def __init__(self) -> None:
        self._bounds: deque[tuple[int, float, float]] = deque(maxlen=_MAX_SAMPLES)
        """When an answer came, and the differences it leaves room for."""
        self._date = ""

    @property
    def seconds(self) -> float | None:
        """How far they are apart, whichever is ahead; None if no answer told its date."""
        return min((_min_skew(*bounds) for _, *bounds in self._bounds), default=None)

    def record(self, date: str | None, *, requested_at: int, now: int) -> None:
        """An answer to what was asked at that time came now, both by our clock."""
        # Many answers have the same date; one of them tells as much as all.
        if not date or date == self._date or now < requested_at:
            return
        self._date = date
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        self._prune(now)
        # It was some time within a second, and it is ours some time between asking and now.
        self._bounds.append((now, requested_at / _SECOND - told - 1, now / _SECOND - told))

    def _prune(self, now: int) -> None:
        bounds = self._bounds
        if bounds and now < bounds[-1][0]:
            bounds.clear()  # our clock was set back
        while bounds and now - bounds[0][0] >= _SAMPLE_LIFETIME_NS:
            bounds.popleft()


def _min_skew(lowest: float, highest: float) -> float:
    """The smallest difference between these two, without its sign."""
    return max(0.0, lowest, -highest)


REQUEST_BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds. Upstream's."""
NO_RESPONSE = "<error>"
"""Upstream's code for a request that no answer came to: why would be a word without bounds."""
_MAX_LABEL_SETS = 100
"""A server may answer with any three digits."""


class RequestMetrics:
    """Counted in one event loop; the counts may be read from anywhere."""

    def __init__(self) -> None:
        self.responses = CounterVec(max_series=_MAX_LABEL_SETS)
        """By `code`, `method`, `host`: every request, watches too."""
        self.seconds = HistogramVec(*REQUEST_BOUNDS, max_series=_MAX_LABEL_SETS)
        """By `verb`, `host`: from the beginning of a call to the end of its answer, whatever that
        was. A watch has no such end."""

    def record_response(self, code: int | None, method: str, host: str) -> None:
        """A request was sent, and this is the code of its answer; None if there was none."""
        self.responses.inc(NO_RESPONSE if code is None else str(code), method, host)

    def record_call(self, seconds: float, verb: str, host: str) -> None:
        """A whole call took so long."""
        self.seconds.observe(seconds, verb, host)


def server_host(server: str) -> str:
    """The host of a URL with its port, as upstream tells it; never with a password."""
    return server.partition("://")[2].partition("/")[0].rpartition("@")[2]


class ServerHealth:
    """Whether the server is there, as far as the newest request or watch tells."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._skew = ClockSkew()
        self._last_response = 0.0
        self._is_reachable = False
        self.requests = RequestMetrics()

    @property
    def is_reachable(self) -> bool:
        """Whether it answered when it was last spoken to; False before it ever did."""
        return self._is_reachable

    @property
    def age_seconds(self) -> float:
        """Since it was last heard, or since the beginning if it never was."""
        return self._elapsed.seconds() - self._last_response

    @property
    def clock_skew_seconds(self) -> float | None:
        """How far our clocks are apart, by the dates of its answers; None if it tells none."""
        return self._skew.seconds

    def now(self) -> int:
        """By our clock, for `dated`."""
        return self._clock.now()

    def record_date(self, date: str | None, requested_at: int) -> None:
        """An answer has this date, to what was asked then."""
        self._skew.record(date, requested_at=requested_at, now=self._clock.now())

    def record_response(self) -> None:
        """It has said something, be it a refusal."""
        self._last_response = self._elapsed.seconds()
        self._is_reachable = True

    def record_failure(self) -> None:
        """It did not answer, or the connection broke."""
        self._is_reachable = False
