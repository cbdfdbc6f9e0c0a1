"""Record the history in the root directory: statuses, events, foreign writes, late statuses.

An error of the history file is logged and stops nothing else.
"""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from podstatus.agent.compose.status_events import StatusEvents
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.kube.objects.meta import NamedPod, ObjectReference
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.agent_downtime import AgentDowntime, last_alive
from podstatus.observe.history.read_thread import AsyncHistoryReader
from podstatus.observe.history.status_writer import StatusHistoryWriter
from podstatus.observe.history.store import History, HistoryEntry, HistoryError
from podstatus.observe.history.writer import HistoryCounts, Retention
from podstatus.observe.transitions.status_transitions import FOREIGN_WRITE, SYNC, Transition
from podstatus.status.metrics import Counters

logger = logging.getLogger(__name__)

HISTORY_FILE = "history.db"
"""In the root-dir."""


class HistoryFile:
    """The history, if there is one."""

    def __init__(self, settings: AgentSettings, root: Path) -> None:
        self.path = root / HISTORY_FILE
        self.problem = ""
        """Why there is none, though one is wanted."""
        self.retention = Retention(days=settings.history_days, size=settings.history_size)
        self.store: History | None = None
        """For the one who writes it."""
        self._counts: Callable[[], HistoryCounts] | None = None
        self._reader = AsyncHistoryReader(self.require_path)
        if settings.history:
            self._open_store()

    def _open_store(self) -> None:
        try:
            self.store = History.open(self.path)
        except HistoryError as error:
            self.problem = str(error)
            logger.error("no history is kept: error=%s", error)

    def set_counts_source(self, counts: Callable[[], HistoryCounts]) -> None:
        """Who writes it knows what became of what was told."""
        self._counts = counts

    @property
    def counts(self) -> HistoryCounts:
        """What became of what was told."""
        return HistoryCounts(problem=self.problem) if self._counts is None else self._counts()

    def health(self) -> str | None:
        """Why nothing is written at the moment; None if it is."""
        return self.counts.problem or None

    def require_path(self) -> Path:
        """Where it is. Raises HistoryError if there is none."""
        if self.store is None:
            raise HistoryError(self.problem or "no history is kept here (--no-history)")
        return self.path

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """What happened to the pods of this name. Raises HistoryError."""
        return await self._reader.timeline(namespace, name, after=after)

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """What happened on the whole after a number. Raises HistoryError."""
        return await self._reader.transitions(after, limit=limit)

    def close(self) -> None:
        """Let go of the file, when nobody writes any more, and of the thread that reads it."""
        self._reader.close()
        if self.store is not None:
            try:
                self.store.close()
            except sqlite3.Error as error:
                logger.warning("history not closed: error=%s", error)


SLOW_SYNC_SECONDS = 1.0
"""From when on it is worth noting how long a status took to arrive."""


class AgentHistory(HistoryFile):
    """The history of this node, if there is one."""

    def __init__(self, settings: AgentSettings, root: Path, clock: Clock) -> None:
        # Asked before it is opened: that may set the time of the file.
        since = last_alive(root / HISTORY_FILE)
        super().__init__(settings, root)
        self.writer: StatusHistoryWriter | None = None
        self.downtime: AgentDowntime | None = None
        """To be told of statuses before the historian is."""
        self.translate_uid: Callable[[str], PodUID] = PodUID
        """What a pod is called here whose mirror pod may be meant."""
        self.on_foreign_write: Callable[[PodUID], None] = lambda _: None
        """Told whose status others wrote, whether a history is kept or not."""
        if self.store is not None:
            historian = StatusHistoryWriter(self.store, clock=clock, retention=self.retention)
            self.set_counts_source(lambda: historian.counts)
            self.writer = historian
            pods = self.store.pod_uids()
            self.downtime = AgentDowntime(
                historian, self.path, pods, last_alive_at=since, clock=clock
            )

    def record_event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        """An event was recorded; those about pods are noted."""
        if self.writer is not None and about.kind == "Pod":
            container = _container_name(about.field_path)
            self.writer.add_event(self._own_reference(about), type_, reason, message, container)

    def record_slow_sync(self, uid: PodUID, namespace: str, name: str, seconds: float) -> None:
        """A status has arrived; it is noted if that took long."""
        if self.writer is not None and seconds >= SLOW_SYNC_SECONDS:
            pod = ObjectReference(namespace=namespace, name=name, uid=uid)
            self.writer.add_entry(pod, Transition(kind=SYNC, after=f"{seconds:.1f} s"))

    def record_foreign_write(self, pod: NamedPod, message: str) -> None:
        """Others wrote what is ours, and it was corrected."""
        self.on_foreign_write(self.translate_uid(pod.uid))
        if self.writer is not None:
            reason = reasons.FOREIGN_STATUS_WRITE
            note = Transition(kind=FOREIGN_WRITE, reason=reason, message=message)
            self.writer.add_entry(self._own_reference(pod), note)

    def _own_reference(self, pod: NamedPod) -> ObjectReference:
        uid = self.translate_uid(pod.uid)
        return ObjectReference(namespace=pod.namespace, name=pod.name, uid=uid)


class RecordingCounters(Counters):
    """Counts what a status manager reports, and has late statuses noted."""

    def __init__(self, history: AgentHistory) -> None:
        super().__init__()
        self._history = history

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        """The API server has this pod's status."""
        self._history.record_slow_sync(uid, namespace, name, duration_seconds)


class RecordingEvents:
    """Events of the status manager; foreign writes are noted too, as they are told of the node."""

    def __init__(self, events: StatusEvents, history: AgentHistory) -> None:
        self._events = events
        self._history = history

    def warn(self, pod: NamedPod, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        if reason == reasons.FOREIGN_STATUS_WRITE:
            self._history.record_foreign_write(pod, message)
        self._events.warn(pod, reason, message)


def _container_name(field_path: str) -> str:
    """The name in `spec.containers{app}`."""
    _, opened, name = field_path.partition("{")
    return name.removesuffix("}") if opened else ""
