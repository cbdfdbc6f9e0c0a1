"""Schedule of status reports without a change."""

from collections.abc import Callable

from podstatus.base.clock import Clock


class ReportSchedule:
    """Decides when an unchanged status is reported again.

    After a change the next report is shifted by a random half period, earlier or later, so that
    nodes that changed together do not report together. Later reports keep that offset.
    Upstream: tryUpdateNodeStatus and calculateDelay, kubelet_node_status.go v1.36.4.
    """

    def __init__(self, period: float, *, clock: Clock, random: Callable[[], float]) -> None:
        self._period = period
        self._random = random
        self._clock = clock
        self._due_at = clock.monotonic()
        self._is_first = True

    def is_due(self) -> bool:
        """Whether a report is due now."""
        return self._clock.monotonic() >= self._due_at

    def mark_sent(self, *, changed: bool) -> None:
        """Record that the server has accepted a report."""
        delay = self._period * (self._random() - 0.5) if changed or self._is_first else 0.0
        self._is_first = False
        self._due_at = self._clock.monotonic() + round((self._period + delay) * 1e9)
