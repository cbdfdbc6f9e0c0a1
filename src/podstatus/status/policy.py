"""How statuses are sent, as a value: every difference from upstream is a named field."""

import msgspec


class SyncPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One loop, one pod after another, read before write."""

    full_sync_period: float = 10.0
    """Seconds between reconciles of everything. Upstream: syncPeriod."""

    restamp_cached_disruption: bool = True
    """Whether a DisruptionTarget restamped on its way out is restamped in the cache too,
    without a new version. Upstream does, through a slice that both share."""

    def __post_init__(self) -> None:
        if not self.full_sync_period > 0:
            raise ValueError(
                f"full_sync_period is {self.full_sync_period!r}; seconds above 0 are expected"
            )

    @classmethod
    def upstream(cls) -> "SyncPolicy":
        """Exactly what the kubelet of v1.36 does; recordings are replayed with it."""
        return cls()
