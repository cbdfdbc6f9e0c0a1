"""How events are sent, as a value."""

import msgspec


class EventPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a recorder; the defaults are the kubelet's.

    Upstream: eventRecordQPS and eventBurst of KubeletConfiguration; maxQueuedEvents,
    maxTriesPerEvent and defaultSleepDuration, client-go v0.36.4, tools/record/event.go.
    """

    qps: float = 50
    """Requests a second, once the burst is spent (`eventRecordQPS`); 0 for no limit."""
    burst: int = 100
    """Requests that may go at once (`eventBurst`)."""
    max_queued: int = 1000
    """Events that may wait; those that come then are dropped."""
    max_tries: int = 12
    """How often an event is sent before it is given up."""
    retry_seconds: float = 10
    """Between two tries; the first wait is a random part of it, so that not all nodes come back
    at the same moment."""

    def __post_init__(self) -> None:
        if self.qps < 0 or (self.qps and self.burst < 1):
            raise ValueError(
                f"qps={self.qps}, burst={self.burst} lets no event through; give more than zero, "
                "or qps=0 for no limit"
            )
        if self.max_queued < 1 or self.max_tries < 1 or self.retry_seconds < 0:
            raise ValueError(
                f"max_queued={self.max_queued}, max_tries={self.max_tries}, "
                f"retry_seconds={self.retry_seconds}: at least 1, 1 and 0 are expected"
            )
