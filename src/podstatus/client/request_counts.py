"""How many requests were sent to a server, what it answered, and how long that took.

Upstream: requestResult and requestLatency, component-base/metrics/prometheus/restclient, and where
client-go/rest/request.go tells them, v0.36.4.
"""

from podstatus.base.metrics import Spread, Tally

REQUEST_BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds. Upstream's."""
NO_ANSWER = "<error>"
"""Upstream's code for a request that no answer came to: why would be a word without bounds."""
_MOST_KINDS = 100
"""A server may answer with any three digits."""


class RequestCounts:
    """Counted in one event loop; the counts may be read from anywhere."""

    def __init__(self) -> None:
        self.answers = Tally(most=_MOST_KINDS)
        """By `code`, `method`, `host`: every request, watches too."""
        self.seconds = Spread(*REQUEST_BOUNDS, most=_MOST_KINDS)
        """By `verb`, `host`: from the beginning of a call to the end of its answer, whatever that
        was. A watch has no such end."""

    def sent(self, code: int | None, method: str, host: str) -> None:
        """A request was sent, and this is the code of its answer; None if there was none."""
        self.answers.add(NO_ANSWER if code is None else str(code), method, host)

    def called(self, seconds: float, verb: str, host: str) -> None:
        """A whole call took so long."""
        self.seconds.add(seconds, verb, host)


def host_of(server: str) -> str:
    """The host of a URL with its port, as upstream tells it; never with a password."""
    return server.partition("://")[2].partition("/")[0].rpartition("@")[2]
