"""How statuses are sent, as a value: every difference from upstream is a named field."""

import msgspec


class ParallelSyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Many pods at once, each in order; only the newest status of each is sent.

    Each field says what upstream does instead.
    """

    in_flight: int = 32
    """How many pods are synced at the same time. Upstream: 1."""

    read_first: bool = False
    """Whether each pod is read before it is patched. Upstream: True. Otherwise the patch starts
    from the newest copy that is known: what the watch brought, or the last patch's answer."""

    prioritize: bool = True
    """Whether deletions and first readiness overtake the rest, and reconciles come last.
    Upstream: False, whatever order the cache has."""

    initial_retry_seconds: float = 1.0
    """Seconds until a pod that failed is tried again; each further time twice as long. Upstream: 0,
    with the next batch, whatever failed."""

    max_retry_seconds: float = 60.0
    """Seconds at most until a pod is tried again that failed; a larger `Retry-After` is not
    honoured. Upstream: 0."""

    rejected_retry_seconds: float = 300.0
    """Seconds at most until a pod is tried again whose status was rejected, or that is said to be
    gone though the watch still shows it. Upstream: 0."""

    circuit_after: int = 8
    """After how many pods in a row that could not reach the server, or found it failing, only a
    few at a time are tried, and read first, until one is answered. Upstream: 0, which is never."""

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise ValueError(f"in_flight is {self.in_flight!r}; at least 1 is expected")
        if (
            not 0
            <= self.initial_retry_seconds
            <= min(self.max_retry_seconds, self.rejected_retry_seconds)
        ):
            raise ValueError(
                f"initial_retry_seconds is {self.initial_retry_seconds!r}; seconds from 0 "
                "to max_retry_seconds "
                f"({self.max_retry_seconds!r}) and rejected_retry_seconds "
                f"({self.rejected_retry_seconds!r}) are expected"
            )
        if self.circuit_after < 0:
            raise ValueError(f"circuit_after is {self.circuit_after!r}; 0 or more is expected")


class SyncPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When and how statuses are sent; as it stands, ours. `upstream()` is the kubelet's."""

    full_sync_period: float = 10.0
    """Seconds between reconciles of everything. Upstream: syncPeriod."""

    restamp_cached_disruption: bool = False
    """Whether a DisruptionTarget restamped on its way out is restamped in the cache too,
    without a new version. Upstream does, through a slice that both share."""

    parallel: ParallelSyncOptions | None = ParallelSyncOptions()
    """None is upstream's way: in batches, one pod after another, read before write; whatever
    failed is tried again with the next batch, and nothing is remembered of it."""

    def __post_init__(self) -> None:
        if not self.full_sync_period > 0:
            raise ValueError(
                f"full_sync_period is {self.full_sync_period!r}; seconds above 0 are expected"
            )

    @classmethod
    def upstream(cls) -> "SyncPolicy":
        """Exactly what the kubelet of v1.36 does; recordings are replayed with it."""
        return cls(restamp_cached_disruption=True, parallel=None)
