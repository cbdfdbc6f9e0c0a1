"""The history writer of a node: a listener of the status manager.

writer = StatusHistoryWriter(History.open(path), clock=clock)
status_manager.add_notifier(writer)
tasks.create_task(writer.run())
"""

from collections.abc import Callable

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.history.sqlite_store import History
from podstatus.observe.history.write_queue import MAX_BYTES, MAX_ENTRIES
from podstatus.observe.history.writer import HistoryWriter, Retention, ignore
from podstatus.observe.ports import HistoryCounts
from podstatus.observe.transitions.tracker import STATUS_SOURCE, TransitionTracker

__all__ = ["HistoryCounts", "Retention", "StatusHistoryWriter"]


class StatusHistoryWriter(HistoryWriter[Pod]):
    """Records every status of the manager. Thread-safe."""

    def __init__(
        self,
        history: History,
        *,
        clock: Clock,
        retention: Retention | None = None,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        on_loss: Callable[[str], None] = ignore,
    ) -> None:
        super().__init__(
            history,
            TransitionTracker(STATUS_SOURCE),
            clock=clock,
            retention=retention,
            max_entries=max_entries,
            max_bytes=max_bytes,
            on_loss=on_loss,
        )

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """Record the new status, which `pod` already has."""
        self.pod_changed(pod)

    def on_pod_removed(self, pod: Pod) -> None:
        """Record that the pod has finished."""
        self.pod_finished(pod)
