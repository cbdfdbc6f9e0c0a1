"""How a reflector follows a server."""

import msgspec

from podstatus.base.backoff import Backoff


class ReflectorPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, how patiently, how much at once."""

    list_seconds: float = 300.0
    """A full list at least so often, beside the watch."""
    idle_timeout_seconds: float = 90.0
    """A watch that says nothing for so long is opened anew: it may be broken. Bookmarks come once a
    minute, but from kube-apiserver only if something happened, or its etcd says how far it is."""
    backoff: Backoff = Backoff()
    """After failures. Upstream: defaultBackoffInit and so on, reflector.go of client-go v0.36.4."""
    max_objects: int = 200_000
    """Objects that are kept; a server that shows more is not followed. Kubernetes supports clusters
    of 150,000 pods."""
    page: int = 500
    """Objects of a list at once; 0 for all. Upstream: defaultPageSize, pager.go of client-go."""

    def __post_init__(self) -> None:
        if not (self.list_seconds > 0 and self.idle_timeout_seconds > 0):
            raise ValueError(
                f"list_seconds is {self.list_seconds!r} and silence_seconds is"
                f" {self.idle_timeout_seconds!r}; numbers above 0 are expected"
            )
        if self.max_objects < 1:
            raise ValueError(f"max_objects is {self.max_objects!r}; a number from 1 on is expected")
        if self.page < 0:
            raise ValueError(f"page is {self.page!r}; a number from 0 on is expected")
