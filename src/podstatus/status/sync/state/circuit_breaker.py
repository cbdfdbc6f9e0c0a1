"""Whether the server is there: found out by a few pods at a time while it is not."""

import msgspec
from msgspec import structs

from podstatus.base.backoff import Backoff
from podstatus.kube.objects.pod import PodUID

_WAITS = Backoff(initial_seconds=0.5, max_seconds=5.0)
"""Between two rounds of tries. The longest is what a server that is back may have to wait for its
statuses: less than a reconcile."""

FEW = 8
"""Of so many that may usually be under way, one is while nobody knows whether the server is there.
More than one pod in all, as the fault may be the pod's."""


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the server, as a value."""

    after: int
    """How many pods have to fail in a row to open it; 0 for none."""
    failed_pods: frozenset[PodUID] = frozenset()
    """Since the last answer. The same pod again says nothing new about the server."""
    backoff: Backoff = _WAITS
    closed_until: float = 0.0
    """Nobody is let through before this moment, once it is open."""

    @property
    def is_open(self) -> bool:
        """Whether the server counts as not there."""
        return 0 < self.after <= len(self.failed_pods)

    def failed(self, uid: PodUID, now: float, chance: float) -> "Circuit":
        """After the server failed, or could not be reached."""
        was_open, counted = self.is_open, self
        if self.after and not was_open:
            counted = structs.replace(self, failed_pods=self.failed_pods | {uid})
        if not counted.is_open or (was_open and now < self.closed_until):
            return counted  # or one of several that set out together
        backoff = self.backoff.failed()
        return structs.replace(counted, backoff=backoff, closed_until=now + backoff.delay(chance))

    def answered(self) -> "Circuit":
        """After the server said anything sensible, a refusal included."""
        return Circuit(after=self.after) if self.failed_pods else self

    def forgiven(self) -> "Circuit":
        """Let some through at once; if they fail, the waits go on."""
        return structs.replace(self, closed_until=0.0)

    def most_in_flight(self, now: float, usual: int) -> int:
        """How many pods may be under way now."""
        if not self.is_open:
            return usual
        return max(1, usual // FEW) if now >= self.closed_until else 0
