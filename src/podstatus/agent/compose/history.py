"""Record the history in the root directory: statuses, events, foreign writes, slow syncs, the node.

An error of the history file is logged; all other services continue.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.kube.objects.meta import NamedPod, ObjectReference
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import (
    History,
    HistoryEntry,
    HistoryError,
    HistoryReader,
    NodeRecords,
    open_history_reader,
)
from podstatus.observe.history.status_listener import (
    AgentDowntime,
    StatusHistoryWriter,
    last_alive,
)
from podstatus.observe.history.writer import HistoryWriter, Retention
from podstatus.observe.ports import HistoryCounts
from podstatus.observe.transitions.compare_statuses import (
    AGENT,
    EVENT,
    FOREIGN_WRITE,
    SYNC,
    Transition,
)
from podstatus.observe.transitions.node_transitions import RUNNING, STOPPED
from podstatus.status.counters import Counters

logger = logging.getLogger(__name__)

HISTORY_FILE = "history.db"
"""File name in the root directory."""


WriterT = TypeVar("WriterT", bound=HistoryWriter[Any])
Result = TypeVar("Result")


class HistoryFile(Generic[WriterT]):
    """The history database and its writer, if it is enabled and usable.

    It is read in a thread of its own: asyncio's default threads resolve names and write to disk,
    and may all be blocked just when the history is needed.
    """

    def __init__(
        self, settings: AgentSettings, root: Path, build_writer: Callable[[History], WriterT]
    ) -> None:
        self._read_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-history")
        self.path = root / HISTORY_FILE
        self.problem = ""
        """Why the history is enabled but not usable; empty if it is usable or disabled."""
        self.store: History | None = None
        """The database for writing; None if disabled or not usable."""
        self.writer: WriterT | None = None
        """None if there is no `store`."""
        if settings.history:
            self._open_store(build_writer)

    def _open_store(self, build_writer: Callable[[History], WriterT]) -> None:
        try:
            self.store = History.open(self.path)
        except HistoryError as error:
            self.problem = str(error)
            logger.error("history is not recorded: error=%s", error)
        else:
            self.writer = build_writer(self.store)

    @property
    def counts(self) -> HistoryCounts:
        """Entries written, waiting and dropped, and the current problem."""
        return HistoryCounts(problem=self.problem) if self.writer is None else self.writer.counts

    def health(self) -> str | None:
        """Health check: return the current write problem, None if there is none."""
        return self.counts.problem or None

    def require_path(self) -> Path:
        """Return the path of the database. Raises HistoryError if there is no history."""
        if self.store is None:
            raise HistoryError(self.problem or "history is disabled (--no-history)")
        return self.path

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """Return the entries of all pods of this name. Raises HistoryError."""
        return await self._read(lambda history: history.timeline(namespace, name, after=after))

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """Return the entries of all pods after an ID. Raises HistoryError."""
        return await self._read(lambda history: history.entries_after(after, limit=limit))

    async def node_timeline(self, node: str, *, after: int = 0) -> NodeRecords:
        """Return the history of a node. Raises HistoryError."""
        return await self._read(lambda history: history.node_timeline(node, after=after))

    async def _read(self, query: Callable[[HistoryReader], Result]) -> Result:
        def read() -> Result:
            with open_history_reader(self.require_path()) as history:
                return query(history)

        return await asyncio.get_running_loop().run_in_executor(self._read_thread, read)

    def close(self) -> None:
        """Close the reader thread and the database; the writer must have stopped."""
        self._read_thread.shutdown(wait=False, cancel_futures=True)
        if self.store is not None:
            try:
                self.store.close()
            except sqlite3.Error as error:
                logger.warning("cannot close the history: error=%s", error)


def history_retention(settings: AgentSettings) -> Retention:
    return Retention(days=settings.history_days, size=settings.history_size)


SLOW_SYNC_SECONDS = 1.0
"""Record a sync that took at least this long."""


class AgentHistory(HistoryFile[StatusHistoryWriter]):
    """The history of a node agent, if it is enabled and usable."""

    def __init__(
        self,
        settings: AgentSettings,
        root: Path,
        clock: Clock,
        *,
        translate_uid: Callable[[str], PodUID],
        on_foreign_write: Callable[[PodUID], None],
        on_loss: Callable[[str], None],
    ) -> None:
        """`translate_uid` maps the UID of a mirror pod to that of its static pod.

        `on_foreign_write` is called for each foreign status write, with or without a history,
        `on_loss` in the event loop with the reason when the file was lost.
        """
        # Before the database is opened, which may change the file's mtime.
        since = last_alive(root / HISTORY_FILE)

        def build_writer(store: History) -> StatusHistoryWriter:
            return StatusHistoryWriter(
                store, clock=clock, retention=history_retention(settings), on_loss=on_loss
            )

        super().__init__(settings, root, build_writer)
        self.downtime: AgentDowntime | None = None
        """Must be registered as a status notifier before `writer`."""
        self.unfinished_pods: tuple[ObjectReference, ...] = ()
        """Pods of earlier agents whose end is not recorded."""
        self._node_name = settings.node_name
        self._translate_uid = translate_uid
        self._on_foreign_write = on_foreign_write
        if self.store is not None and self.writer is not None:
            self.downtime = AgentDowntime(
                self.writer, self.path, self.store.pod_uids(), last_alive_at=since, clock=clock
            )
            self.unfinished_pods = _unfinished_pods(self.store)
            self.downtime.record_node(self._node_name)
            self._record_agent(self.writer, STOPPED, RUNNING)

    def record_stop(self) -> None:
        """Record that the agent stops in an orderly way; the writer writes it at its end."""
        if self.writer is not None:
            self._record_agent(self.writer, RUNNING, STOPPED)

    def _record_agent(self, writer: StatusHistoryWriter, before: str, after: str) -> None:
        change = Transition(kind=AGENT, before=before, after=after)
        writer.add_node_entry(self._node_name, change)

    def record_event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        """Record an event, if it is about a pod or the node."""
        if self.writer is None:
            return
        if about.kind == "Pod":
            container = _container_name(about.field_path)
            self.writer.add_event(self._own_reference(about), type_, reason, message, container)
        elif about.kind == "Node":
            event = Transition(kind=EVENT, after=type_, reason=reason, message=message)
            self.writer.add_node_entry(self._node_name, event)

    def record_slow_sync(self, uid: PodUID, namespace: str, name: str, seconds: float) -> None:
        """Record the duration of a status sync, if it reaches SLOW_SYNC_SECONDS."""
        if self.writer is not None and seconds >= SLOW_SYNC_SECONDS:
            pod = ObjectReference(namespace=namespace, name=name, uid=uid)
            self.writer.add_entry(pod, Transition(kind=SYNC, duration_seconds=seconds))

    def record_foreign_write(self, pod: NamedPod, message: str) -> None:
        """Record that another client wrote a pod status and the agent corrected it.

        The event of it is about the node, so the recorder does not add it to the pod's history.
        """
        self._on_foreign_write(self._translate_uid(pod.uid))
        if self.writer is not None:
            reason = reasons.FOREIGN_STATUS_WRITE
            transition = Transition(kind=FOREIGN_WRITE, reason=reason, message=message)
            self.writer.add_entry(self._own_reference(pod), transition)

    def _own_reference(self, pod: NamedPod) -> ObjectReference:
        uid = self._translate_uid(pod.uid)
        return ObjectReference(namespace=pod.namespace, name=pod.name, uid=uid)


class RecordingCounters(Counters):
    """The status manager's counters; slow syncs go to the history, too."""

    def __init__(self, history: AgentHistory) -> None:
        super().__init__()
        self._history = history

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        self._history.record_slow_sync(uid, namespace, name, duration_seconds)


def _unfinished_pods(store: History) -> tuple[ObjectReference, ...]:
    try:
        return tuple(store.unfinished_pods())
    except HistoryError as error:
        logger.warning("cannot record pods removed during downtime: error=%s", error)
        return ()


def _container_name(field_path: str) -> str:
    _, opened, name = field_path.partition("{")
    return name.removesuffix("}") if opened else ""
