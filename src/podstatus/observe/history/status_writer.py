"""Writes the history of a node: what its status manager tells.

historian = Historian(History.open(path), clock=clock)
statuses.add_notifier(historian)
tasks.create_task(historian.run())
"""

from collections.abc import Callable

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.history.store import History
from podstatus.observe.history.write_queue import MOST_BYTES, MOST_WAITING
from podstatus.observe.history.writer import HistoryCounts, Retention, Scribe
from podstatus.observe.transitions.tracker import STATUSES, LastSeen

__all__ = ["Historian", "HistoryCounts", "Retention"]


class Historian(Scribe[Pod]):
    """Notes all that it is told. It may be told from any thread."""

    def __init__(
        self,
        history: History,
        *,
        clock: Clock,
        retention: Retention | None = None,
        most_waiting: int = MOST_WAITING,
        most_bytes: int = MOST_BYTES,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """As for a `Scribe`."""
        super().__init__(
            history,
            LastSeen(STATUSES),
            clock=clock,
            retention=retention,
            most_waiting=most_waiting,
            most_bytes=most_bytes,
            beat=beat,
        )

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """The pod has a new status: `pod` has it too."""
        self.told(pod)

    def on_pod_removed(self, pod: Pod) -> None:
        """The pod has reached the end of its life."""
        self.gone(pod)
