"""Intervals, timeouts and limits of a reflector."""

import msgspec

from podstatus.base.backoff import Backoff


class ReflectorPolicy(msgspec.Struct, frozen=True, kw_only=True):
    list_seconds: float = 300.0
    """Maximum time between two full lists during the watch."""
    idle_timeout_seconds: float = 90.0
    """A watch without data for this long is reopened, as its connection may be dead. Bookmarks come
    once a minute, but kube-apiserver only sends them if something changed or its etcd supports
    progress notifications."""
    backoff: Backoff = Backoff()
    """Delay after failures. Upstream: defaultBackoffInit and so on, reflector.go of client-go
    v0.36.4."""
    max_objects: int = 200_000
    """Maximum number of objects; list and watch fail if the server has more. Kubernetes supports
    clusters of 150,000 pods."""
    page: int = 500
    """Objects per page of a list; 0 for all. Upstream: defaultPageSize, pager.go of client-go."""

    def __post_init__(self) -> None:
        if not (self.list_seconds > 0 and self.idle_timeout_seconds > 0):
            raise ValueError(
                f"list_seconds is {self.list_seconds!r} and idle_timeout_seconds is"
                f" {self.idle_timeout_seconds!r}; both must be more than 0"
            )
        if self.max_objects < 1:
            raise ValueError(f"max_objects is {self.max_objects!r}; must be at least 1")
        if self.page < 0:
            raise ValueError(f"page is {self.page!r}; must be at least 0")
