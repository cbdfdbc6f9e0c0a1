"""Stand-ins for the ports of the status manager that remember what they were told."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.update import Termination


class FakeDeletionSafety:
    """A table of pods that could have running containers; others could not."""

    def __init__(self, table: Mapping[str, bool] | None = None) -> None:
        self.table: dict[str, bool] = dict(table or {})

    def could_have_running_containers(self, pod: Pod) -> bool:
        """What the table says."""
        return self.table.get(pod.uid, False)


class Told(msgspec.Struct, frozen=True):
    """A call of a notifier; `status` and `is_added` are None when the pod was removed."""

    uid: PodUID
    status: PodStatus | None = None
    is_added: bool | None = None


class RecordingNotifier:
    """Remembers every notification in order."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        """Remember it."""
        self.told.append(Told(pod.uid, status, is_added))

    def on_pod_removed(self, pod: Pod) -> None:
        """Remember it."""
        self.told.append(Told(pod.uid))


class RecordingStartupLatency:
    """Remembers for which pods it was called."""

    def __init__(self) -> None:
        self.updated: list[PodUID] = []
        self.deleted: list[PodUID] = []

    def record_status_updated(self, pod: Pod) -> None:
        """Remember it."""
        self.updated.append(pod.uid)

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        """Remember it."""
        self.deleted.append(uid)


class CountingObserver:
    """Counts as metrics would."""

    def __init__(self) -> None:
        self.terminations: Counter[Termination] = Counter()
        self.pending: dict[str, int] = {}
        self.in_progress = 0
        self.synced: list[float] = []
        self.failures: Counter[str] = Counter()

    def container_terminated(self, termination: Termination) -> None:
        """Count it."""
        self.terminations[termination] += 1

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        """Take over the gauge."""
        self.pending = dict(by_reason)

    def resizes_in_progress(self, count: int) -> None:
        """Take over the gauge."""
        self.in_progress = count

    def status_synced(self, duration_seconds: float) -> None:
        """Remember it."""
        self.synced.append(duration_seconds)

    def sync_failed(self, failure: str) -> None:
        """Count it."""
        self.failures[failure] += 1
