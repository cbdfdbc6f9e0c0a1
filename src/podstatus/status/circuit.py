"""Whether the server is there: asked by one pod at a time while it is not."""

import msgspec
from msgspec import structs

from podstatus.base.backoff import Backoff

_WAITS = Backoff(first=0.5, most=10.0)
"""Between two tries. The longest is what a server that is back may have to wait for its
statuses: as long as a reconcile."""


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the server, as a value."""

    after: int
    """How many failures in a row open it; 0 for none."""
    failures: int = 0
    backoff: Backoff = _WAITS
    closed_until: float = 0.0
    """Nobody is let through before this moment, once it is open."""

    @property
    def is_open(self) -> bool:
        """Whether the server counts as not there."""
        return 0 < self.after <= self.failures

    def failed(self, now: float, chance: float) -> "Circuit":
        """After the server failed, or could not be reached."""
        counted = structs.replace(self, failures=self.failures + 1)
        if not counted.is_open:
            return counted
        backoff = self.backoff.failed()
        return structs.replace(counted, backoff=backoff, closed_until=now + backoff.seconds(chance))

    def answered(self) -> "Circuit":
        """After the server said anything sensible, a refusal included."""
        return Circuit(after=self.after) if self.failures else self

    def forgiven(self) -> "Circuit":
        """Let the next one through at once; if it fails, the waits go on."""
        return structs.replace(self, closed_until=0.0)

    def most_in_flight(self, now: float, usual: int) -> int:
        """How many pods may be under way now."""
        if not self.is_open:
            return usual
        return 1 if now >= self.closed_until else 0
