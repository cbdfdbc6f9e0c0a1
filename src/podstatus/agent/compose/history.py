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
from podstatus.observe.history.agent_downtime import Absence, last_there
from podstatus.observe.history.read_thread import HistoryReads
from podstatus.observe.history.status_writer import Historian
from podstatus.observe.history.store import History, HistoryError, Moment
from podstatus.observe.history.writer import HistoryCounts, Retention
from podstatus.observe.transitions.status_transitions import FOREIGN, SYNC, Transition
from podstatus.status.metrics import Counters

logger = logging.getLogger(__name__)

HISTORY = "history.db"
"""In the root-dir."""


class HistoryFile:
    """The history, if there is one."""

    def __init__(self, settings: AgentSettings, root: Path) -> None:
        self.path = root / HISTORY
        self.problem = ""
        """Why there is none, though one is wanted."""
        self.retention = Retention(days=settings.history_days, size=settings.history_size)
        self.file: History | None = None
        """For the one who writes it."""
        self._counts: Callable[[], HistoryCounts] | None = None
        self._reads = HistoryReads(self.require)
        if settings.history:
            self._open()

    def _open(self) -> None:
        try:
            self.file = History.open(self.path)
        except HistoryError as error:
            self.problem = str(error)
            logger.error("no history is kept: error=%s", error)

    def counted_by(self, counts: Callable[[], HistoryCounts]) -> None:
        """Who writes it knows what became of what was told."""
        self._counts = counts

    @property
    def counts(self) -> HistoryCounts:
        """What became of what was told."""
        return HistoryCounts(problem=self.problem) if self._counts is None else self._counts()

    def health(self) -> str | None:
        """Why nothing is written at the moment; None if it is."""
        return self.counts.problem or None

    def require(self) -> Path:
        """Where it is. Raises HistoryError if there is none."""
        if self.file is None:
            raise HistoryError(self.problem or "no history is kept here (--no-history)")
        return self.path

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[Moment]:
        """What happened to the pods of this name. Raises HistoryError."""
        return await self._reads.timeline(namespace, name, after=after)

    async def moments(self, after: int, *, most: int) -> list[Moment]:
        """What happened on the whole after a number. Raises HistoryError."""
        return await self._reads.moments(after, most=most)

    def close(self) -> None:
        """Let go of the file, when nobody writes any more, and of the thread that reads it."""
        self._reads.close()
        if self.file is not None:
            try:
                self.file.close()
            except sqlite3.Error as error:
                logger.warning("history not closed: error=%s", error)


LATE_SECONDS = 1.0
"""From when on it is worth noting how long a status took to arrive."""


class KeptHistory(HistoryFile):
    """The history of this node, if there is one."""

    def __init__(self, settings: AgentSettings, root: Path, clock: Clock) -> None:
        # Asked before it is opened: that may set the time of the file.
        since = last_there(root / HISTORY)
        super().__init__(settings, root)
        self.historian: Historian | None = None
        self.absence: Absence | None = None
        """To be told of statuses before the historian is."""
        self.own_uid: Callable[[str], PodUID] = PodUID
        """What a pod is called here whose mirror pod may be meant."""
        self.on_foreign: Callable[[PodUID], None] = lambda _: None
        """Told whose status others wrote, whether a history is kept or not."""
        if self.file is not None:
            historian = Historian(self.file, clock=clock, retention=self.retention)
            self.counted_by(lambda: historian.counts)
            self.historian = historian
            pods = self.file.pods()
            self.absence = Absence(historian, self.path, pods, since=since, clock=clock)

    def event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        """An event was recorded; those about pods are noted."""
        if self.historian is not None and about.kind == "Pod":
            container = _container(about.field_path)
            self.historian.event(self._own(about), type_, reason, message, container)

    def late(self, uid: PodUID, namespace: str, name: str, seconds: float) -> None:
        """A status has arrived; it is noted if that took long."""
        if self.historian is not None and seconds >= LATE_SECONDS:
            pod = ObjectReference(namespace=namespace, name=name, uid=uid)
            self.historian.note(pod, Transition(kind=SYNC, after=f"{seconds:.1f} s"))

    def foreign(self, pod: NamedPod, message: str) -> None:
        """Others wrote what is ours, and it was corrected."""
        self.on_foreign(self.own_uid(pod.uid))
        if self.historian is not None:
            reason = reasons.FOREIGN_STATUS_WRITE
            note = Transition(kind=FOREIGN, reason=reason, message=message)
            self.historian.note(self._own(pod), note)

    def _own(self, pod: NamedPod) -> ObjectReference:
        uid = self.own_uid(pod.uid)
        return ObjectReference(namespace=pod.namespace, name=pod.name, uid=uid)


class NotingCounters(Counters):
    """Counts what a status manager reports, and has late statuses noted."""

    def __init__(self, history: KeptHistory) -> None:
        super().__init__()
        self._history = history

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        """The API server has this pod's status."""
        self._history.late(uid, namespace, name, duration_seconds)


class NotingEvents:
    """Events of the status manager; foreign writes are noted too, as they are told of the node."""

    def __init__(self, events: StatusEvents, history: KeptHistory) -> None:
        self._events = events
        self._history = history

    def warn(self, pod: NamedPod, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        if reason == reasons.FOREIGN_STATUS_WRITE:
            self._history.foreign(pod, message)
        self._events.warn(pod, reason, message)


def _container(field_path: str) -> str:
    """The name in `spec.containers{app}`."""
    _, opened, name = field_path.partition("{")
    return name.removesuffix("}") if opened else ""
