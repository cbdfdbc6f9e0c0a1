"""Fakes that record their calls: the ports of the status manager, and the event sink.

`FakeEventSink` stands in for the API server that an event recorder sends to.
"""

from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from podstatus.kube.api_errors import ConflictError, GoneError
from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.event import Event
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.patch import EVENT, apply_patch
from podstatus.status.decide.update import Termination


class FakeDeletionSafety:
    """Pods that could have running containers, by UID; others could not."""

    def __init__(self, table: Mapping[str, bool] | None = None) -> None:
        self.table: dict[str, bool] = dict(table or {})

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Return the table's entry, False if there is none."""
        return self.table.get(pod.uid, False)


class NotifierCall(msgspec.Struct, frozen=True):
    """A recorded notification; `status` and `is_added` are None for a removed pod."""

    uid: PodUID
    status: PodStatus | None = None
    is_added: bool | None = None


class RecordingNotifier:
    """Records every notification in order."""

    def __init__(self) -> None:
        self.calls: list[NotifierCall] = []

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        self.calls.append(NotifierCall(pod.uid, status, is_added))

    def on_pod_removed(self, pod: Pod) -> None:
        self.calls.append(NotifierCall(pod.uid))


class RecordingStartupLatency:
    """Records the pods it was called for."""

    def __init__(self) -> None:
        self.updated: list[PodUID] = []
        self.deleted: list[PodUID] = []

    def record_status_updated(self, pod: Pod) -> None:
        self.updated.append(pod.uid)

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        self.deleted.append(uid)


class CountingObserver:
    """Counts observations, like a metrics backend."""

    def __init__(self) -> None:
        self.terminations: Counter[Termination] = Counter()
        self.pending: dict[str, int] = {}
        self.in_progress = 0
        self.sync_durations: list[float] = []
        self.failures: Counter[str] = Counter()

    def container_terminated(self, termination: Termination) -> None:
        self.terminations[termination] += 1

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        self.pending = dict(by_reason)

    def resizes_in_progress(self, count: int) -> None:
        self.in_progress = count

    def status_synced(self, duration_seconds: float) -> None:
        self.sync_durations.append(duration_seconds)

    def sync_failed(self, failure: str) -> None:
        self.failures[failure] += 1


class FakeEventSink:
    """Stores events by namespace and name, and applies patches like the server."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], Event] = {}
        self.calls: list[str] = []
        """`create` or `patch`, in order, including failed calls."""
        self.failures: deque[Exception | None] = deque()
        """Errors of the next calls; None for a call that succeeds."""
        self.lost_responses = 0
        """The number of failures that are raised after the work was done."""

    @property
    def summaries(self) -> list[tuple[str, str, int]]:
        """Reason, message and count of all events, in order of creation."""
        return [(event.reason, event.message, event.count) for event in self.events.values()]

    async def create(self, event: Event) -> Event:
        """Store an event. Raises ConflictError if it exists, or the next failure."""
        self.calls.append("create")
        self._fail_before()
        key = (event.metadata.namespace, event.metadata.name)
        if key in self.events:
            raise ConflictError(f"events {key[1]!r} already exists", code=409)
        self.events[key] = event
        self._fail_after()
        return event

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        """Apply a strategic merge patch. Raises GoneError, or the next failure."""
        self.calls.append("patch")
        self._fail_before()
        key = (namespace, name)
        if key not in self.events:
            raise GoneError(f"events {name!r} not found", code=404)
        document = apply_patch(to_document(self.events[key]), msgspec.json.decode(patch), EVENT)
        self.events[key] = from_document(document, Event)
        self._fail_after()
        return self.events[key]

    def _fail_before(self) -> None:
        if not self.lost_responses:
            self._fail()

    def _fail_after(self) -> None:
        if self.lost_responses:
            self.lost_responses -= 1
            self._fail()

    def _fail(self) -> None:
        failure = self.failures.popleft() if self.failures else None
        if failure is not None:
            raise failure
