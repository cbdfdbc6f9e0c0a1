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
from podstatus.observe.history.write_queue import MAX_BYTES, MAX_ENTRIES
from podstatus.observe.history.writer import HistoryCounts, HistoryWriter, Retention
from podstatus.observe.transitions.tracker import STATUS_SOURCE, TransitionTracker

__all__ = ["HistoryCounts", "Retention", "StatusHistoryWriter"]


class StatusHistoryWriter(HistoryWriter[Pod]):
    """Notes all that it is told. It may be told from any thread."""

    def __init__(
        self,
        history: History,
        *,
        clock: Clock,
        retention: Retention | None = None,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        """As for a `HistoryWriter`."""
        super().__init__(
            history,
            TransitionTracker(STATUS_SOURCE),
            clock=clock,
            retention=retention,
            max_entries=max_entries,
            max_bytes=max_bytes,
            heartbeat=heartbeat,
        )

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """The pod has a new status: `pod` has it too."""
        self.pod_changed(pod)

    def on_pod_removed(self, pod: Pod) -> None:
        """The pod has reached the end of its life."""
        self.pod_finished(pod)
