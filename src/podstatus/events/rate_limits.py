"""The limits of an event recorder, as a value."""

import msgspec


class EventPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a recorder; the defaults are the kubelet's.

    Upstream: eventRecordQPS and eventBurst of KubeletConfiguration; maxQueuedEvents,
    maxTriesPerEvent and defaultSleepDuration, client-go v0.36.4, tools/record/event.go.
    """

    qps: float = 50
    """Sustained requests per second (`eventRecordQPS`); 0 means no limit."""
    burst: int = 100
    """Requests that may be sent at once (`eventBurst`)."""
    max_queued: int = 1000
    """Length of the queue; events recorded while it is full are dropped."""
    max_tries: int = 12
    """Number of tries before an event is dropped."""
    retry_seconds: float = 10
    """Delay between two tries. The first delay is a random fraction of it, so that the nodes of a
    cluster do not retry at the same time."""

    def __post_init__(self) -> None:
        if self.qps < 0 or (self.qps and self.burst < 1):
            raise ValueError(
                f"qps={self.qps}, burst={self.burst} allows no event; set both above zero, "
                "or qps=0 for no limit"
            )
        if self.max_queued < 1 or self.max_tries < 1 or self.retry_seconds < 0:
            raise ValueError(
                f"max_queued={self.max_queued}, max_tries={self.max_tries}, "
                f"retry_seconds={self.retry_seconds}; the minimums are 1, 1 and 0"
            )
