"""The sync policy: every difference from upstream is a named field."""

import msgspec


class ParallelSyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the parallel sync: many pods at once, one request per pod, newest status only.

    Each field names the upstream behaviour.
    """

    in_flight: int = 32
    """Maximum number of pods that are synced at the same time. Upstream: 1."""

    read_first: bool = False
    """Whether to GET each pod before the PATCH. Otherwise the patch is based on the newest known
    copy: from the watch, or the response to the last patch. Upstream: True."""

    precondition_after_timeout: bool = True
    """Whether the patch after one without a response has its resource version as a precondition:
    the earlier patch may be applied just before it, which would mix two statuses. Upstream: False.
    """

    prioritize: bool = True
    """Whether deletions and first readiness go first, and reconciles last. Upstream: False, the
    order of the cache."""

    initial_retry_seconds: float = 1.0
    """Seconds before a failed pod is retried; doubled after each further failure. Upstream: 0, it
    is retried with the next batch."""

    max_retry_seconds: float = 60.0
    """Maximum seconds before a failed pod is retried; also caps `Retry-After`. Upstream: 0."""

    rejected_retry_seconds: float = 300.0
    """Maximum seconds before a retry if the status was rejected, or if the server reports the pod
    as gone while the watch still shows it. Upstream: 0."""

    circuit_after: int = 8
    """Consecutive pods that fail because the server is unreachable or failing until the circuit
    breaker opens: then only a few pods at a time are tried, with a GET first, until the server
    responds. Upstream: 0, never."""

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise ValueError(f"in_flight is {self.in_flight!r}; must be at least 1")
        if (
            not 0
            <= self.initial_retry_seconds
            <= min(self.max_retry_seconds, self.rejected_retry_seconds)
        ):
            raise ValueError(
                f"initial_retry_seconds is {self.initial_retry_seconds!r}; must be at least 0 and "
                f"at most max_retry_seconds ({self.max_retry_seconds!r}) and "
                f"rejected_retry_seconds ({self.rejected_retry_seconds!r})"
            )
        if self.circuit_after < 0:
            raise ValueError(f"circuit_after is {self.circuit_after!r}; must be at least 0")


class SyncPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When and how statuses are sent. The defaults are this project's; see `upstream()`."""

    full_sync_period: float = 10.0
    """Seconds between two full syncs. Upstream: syncPeriod."""

    restamp_cached_disruption: bool = False
    """Whether the transition time that the merge sets on DisruptionTarget is also written to the
    cache, without a new version. Upstream does, through a slice shared by both."""

    parallel: ParallelSyncOptions | None = ParallelSyncOptions()
    """None is upstream's sync: in batches, one pod after another, GET before PATCH; failed pods
    are retried with the next batch, and no failure state is stored."""

    def __post_init__(self) -> None:
        if not self.full_sync_period > 0:
            raise ValueError(
                f"full_sync_period is {self.full_sync_period!r}; must be more than 0 seconds"
            )

    @classmethod
    def upstream(cls) -> "SyncPolicy":
        """Return the exact behaviour of the v1.36 kubelet; recordings are replayed with it."""
        return cls(restamp_cached_disruption=True, parallel=None)
