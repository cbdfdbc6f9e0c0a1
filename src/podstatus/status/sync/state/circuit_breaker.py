"""A circuit breaker for the API server: while it is open, only a few pods probe the server."""

import msgspec
from msgspec import structs

from podstatus.base.backoff import Backoff
from podstatus.kube.objects.pod import PodUID

_PROBE_BACKOFF = Backoff(initial_seconds=0.5, max_seconds=5.0)
"""Delay between two rounds of probes. The maximum is the longest time until a recovered server gets
statuses; less than the full sync period."""

PROBE_FRACTION = 8
"""While half open, allow 1/8 of the normal concurrency. With the default that is several pods, as a
failure may be specific to one pod."""


class CircuitBreaker(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the circuit breaker. Times are monotonic seconds."""

    failure_threshold: int
    """Number of consecutive failed pods that opens the circuit; 0 never opens it."""
    failed_pods: frozenset[PodUID] = frozenset()
    """Pods that failed since the last response. A repeated failure of one pod counts once."""
    backoff: Backoff = _PROBE_BACKOFF
    is_open: bool = False
    """Whether the server counts as unavailable."""
    open_until: float = 0.0
    """While the circuit is open, no pod is sent before this time."""

    def failed(self, uid: PodUID, now: float, jitter: float) -> "CircuitBreaker":
        """Return the state after the server failed or was unreachable."""
        failed_pods = self.failed_pods
        if self.is_open:
            if now < self.open_until:
                return self  # a further probe of the same round failed
        elif self.failure_threshold:
            failed_pods |= {uid}
        if not 0 < self.failure_threshold <= len(failed_pods):
            return structs.replace(self, failed_pods=failed_pods)
        backoff = self.backoff.failed()
        until = now + backoff.delay(jitter)
        return structs.replace(
            self, failed_pods=failed_pods, backoff=backoff, is_open=True, open_until=until
        )

    def success(self) -> "CircuitBreaker":
        """Return the state after a valid response of the server, including a rejection."""
        return (
            CircuitBreaker(failure_threshold=self.failure_threshold) if self.failed_pods else self
        )

    def half_open(self) -> "CircuitBreaker":
        """Allow probes immediately; if they fail, the back-off continues."""
        return structs.replace(self, open_until=0.0)

    def max_in_flight(self, now: float, limit: int) -> int:
        """Return how many pods may be in flight now; `limit` while the circuit is closed."""
        if not self.is_open:
            return limit
        return max(1, limit // PROBE_FRACTION) if now >= self.open_until else 0
