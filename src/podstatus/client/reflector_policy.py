"""How a reflector follows a server."""

import msgspec

from podstatus.base.backoff import Backoff


class ReflectorPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, how patiently, how much at once."""

    list_seconds: float = 300.0
    """A full list at least so often, beside the watch."""
    silence_seconds: float = 90.0
    """A watch that says nothing for so long is broken; bookmarks come once a minute."""
    backoff: Backoff = Backoff()
    """After failures. Upstream: NewReflectorWithOptions, reflector.go of client-go v0.36.4."""
    page: int = 500
    """Objects. Upstream: the default page size of client-go's pager v0.36.4."""

    def __post_init__(self) -> None:
        if not (self.list_seconds > 0 and self.silence_seconds > 0):
            raise ValueError(
                f"list_seconds is {self.list_seconds!r} and silence_seconds is"
                f" {self.silence_seconds!r}; numbers above 0 are expected"
            )
