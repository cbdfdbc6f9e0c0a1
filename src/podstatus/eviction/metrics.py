"""How many pods were evicted and why, and how old the usage was that led to it."""

from podstatus.base.metric_values import DEFAULT_BUCKETS, CounterVec, HistogramVec


class EvictionMetrics:
    """Updated in one event loop; readable from any thread."""

    def __init__(self) -> None:
        self.evictions = CounterVec()
        """By signal, or name of the limit that was exceeded."""
        self.stats_age = HistogramVec(*DEFAULT_BUCKETS)
        """Age in seconds of the observation that led to an eviction, by signal."""
