"""When the status is sent although nothing has changed."""

from collections.abc import Callable

from podstatus.base.clock import Clock, Elapsed


class ReportSchedule:
    """Counts the time since the status was last sent.

    After a change the next report comes by chance, half a period early to half a period late, so
    that nodes which changed together do not report together; after that it keeps its distance.
    Upstream: tryUpdateNodeStatus and calculateDelay, kubelet_node_status.go v1.36.4.
    """

    def __init__(self, period: float, *, clock: Clock, random: Callable[[], float]) -> None:
        self._period = period
        self._random = random
        self._elapsed = Elapsed(clock)
        self._due_at = 0.0
        self._is_first = True

    def is_due(self) -> bool:
        """Whether it is time."""
        return self._elapsed.seconds() >= self._due_at

    def mark_sent(self, *, changed: bool) -> None:
        """The server has it."""
        delay = self._period * (self._random() - 0.5) if changed or self._is_first else 0.0
        self._is_first = False
        self._due_at = self._elapsed.seconds() + self._period + delay
