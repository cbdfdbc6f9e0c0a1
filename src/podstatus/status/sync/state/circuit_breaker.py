"""Whether the server is there: found out by a few pods at a time while it is not."""

import msgspec
from msgspec import structs

from podstatus.base.backoff import Backoff
from podstatus.kube.objects.pod import PodUID

_PROBE_BACKOFF = Backoff(initial_seconds=0.5, max_seconds=5.0)
"""Between two rounds of tries. The longest is what a server that is back may have to wait for its
statuses: less than a reconcile."""

PROBE_FRACTION = 8
"""Of so many that may usually be under way, one is while nobody knows whether the server is there.
More than one pod in all, as the fault may be the pod's."""


class CircuitBreaker(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the server, as a value."""

    failure_threshold: int
    """How many pods have to fail in a row to open it; 0 for none."""
    failed_pods: frozenset[PodUID] = frozenset()
    """Since the last answer. The same pod again says nothing new about the server."""
    backoff: Backoff = _PROBE_BACKOFF
    open_until: float = 0.0
    """Nobody is let through before this moment, once it is open."""

    @property
    def is_open(self) -> bool:
        """Whether the server counts as not there."""
        return 0 < self.failure_threshold <= len(self.failed_pods)

    def failed(self, uid: PodUID, now: float, jitter: float) -> "CircuitBreaker":
        """After the server failed, or could not be reached."""
        was_open, counted = self.is_open, self
        if self.failure_threshold and not was_open:
            counted = structs.replace(self, failed_pods=self.failed_pods | {uid})
        if not counted.is_open or (was_open and now < self.open_until):
            return counted  # or one of several that set out together
        backoff = self.backoff.failed()
        return structs.replace(counted, backoff=backoff, open_until=now + backoff.delay(jitter))

    def success(self) -> "CircuitBreaker":
        """After the server said anything sensible, a refusal included."""
        return (
            CircuitBreaker(failure_threshold=self.failure_threshold) if self.failed_pods else self
        )

    def half_open(self) -> "CircuitBreaker":
        """Let some through at once; if they fail, the waits go on."""
        return structs.replace(self, open_until=0.0)

    def max_in_flight(self, now: float, limit: int) -> int:
        """How many pods may be under way now."""
        if not self.is_open:
            return limit
        return max(1, limit // PROBE_FRACTION) if now >= self.open_until else 0
