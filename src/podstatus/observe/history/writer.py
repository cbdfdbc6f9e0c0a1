"""Write the history asynchronously: changes are queued, and written in batches.

    writer = SummaryHistoryWriter(History.open(path), clock=clock)
    writer.pod_changed(summary)
    tasks.create_task(writer.run())

Callers never wait: a change is queued, and the difference to the previous state is computed when a
batch is written. The queue is bounded; a change that does not fit is counted, and the next change
of that pod is compared with the last one written. Disk access is in a dedicated thread. A file that
another program deletes or damages is detected within a second: a new one begins with the current
state of all pods.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.events import reasons
from podstatus.kube.objects.meta import NamedPod
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.node_changes import NodeChanges, estimate_node_size
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import (
    History,
    HistoryEntry,
    HistoryError,
    NodeRecords,
    node_entry,
)
from podstatus.observe.history.write_queue import (
    MAX_BYTES,
    MAX_ENTRIES,
    QueuedNode,
    QueuedState,
    QueuedTransition,
    WriteQueue,
)
from podstatus.observe.ports import HistoryCounts
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.compare_statuses import (
    AGENT_DOWNTIME,
    EVENT,
    FINISHED,
    Transition,
)
from podstatus.observe.transitions.node_transitions import NodeState
from podstatus.observe.transitions.tracker import (
    SUMMARY_SOURCE,
    P,
    TransitionSource,
    TransitionTracker,
)

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_PERIOD_SECONDS = 0.25
"""Between two writes; a kill loses less than half a second."""
_BATCH_SIZE = 500
"""Changes per batch. A new pod makes a dozen entries; with batches of 2,000 pods, as after the
first list of a cluster, the memory of an observer would grow permanently by a third.
"""
_CHECK_SECONDS = 1.0
"""Between two checks that the file still exists."""
_PRUNE_SECONDS = 60.0
_PRUNE_ENTRIES = 20_000
"""Entries, about 2 MB, after which the file is pruned as well, so that a flood does not fill the
disk."""
_MAX_ELAPSED_NANOS = round(10 * _PRUNE_SECONDS * 1e9)
"""Upper bound of the elapsed time between two prunings. More elapses only while the process is
stopped, or with a fake monotonic clock."""
_DAY_NANOS = 24 * 3600 * 1_000_000_000
_FOREVER_NANOS = 2**62
"""146 years; more does not fit into an SQLite integer."""
_TRANSITION_BYTES = 500


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the history is retained."""

    days: float = 7.0
    """Days during which the history is written: time without an agent does not count, and a wall
    clock that is set does not matter.
    """
    size: int = 256 * 2**20
    """Bytes of the file; an entry has about 110."""


QueueEntry: TypeAlias = QueuedState[Any] | QueuedTransition | QueuedNode


def ignore(*_: object) -> None:
    """For a writer without a heartbeat, or without a listener."""


class HistoryWriter(Generic[P]):
    """Records changes of pods and nodes. Methods that add an entry are thread-safe."""

    source: TransitionSource[P, Any]
    """How to derive transitions from the pods of a subclass."""

    def __init__(
        self,
        history: History,
        *,
        clock: Clock,
        retention: Retention | None = None,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        heartbeat: Callable[[], None] = ignore,
        on_loss: Callable[[str], None] = ignore,
    ) -> None:
        """`on_loss` is called in the event loop with the reason when a file was lost."""
        self._history = history
        self._tracker = TransitionTracker(self.source)
        self._nodes = NodeChanges(history.last_node_values)
        self._clock = clock
        self._retention = retention or Retention()
        self._heartbeat = heartbeat
        self._queue: WriteQueue[Any] = WriteQueue(max_entries, max_bytes)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")
        self._entries_written = self._failed_changes = 0
        """Entries written, and changes lost to an error; updated by the writer thread."""
        self._by_kind: Counter[str] = Counter()
        self._entries_since_prune = 0
        self._pruned_at = clock.monotonic()
        self._writing_count = 0
        """Changes in the current batch."""
        self._failures = FailureLog(logger, "writing the history", expected=HistoryError)
        self._is_file_missing = False
        """Whether the file is lost and could not be replaced yet."""
        self._loss_message = ""
        """What happened to the lost file, until the new one has an entry about it."""
        self._files_replaced = 0
        self._unreported_losses: list[str] = []
        self._on_loss = on_loss

    # Adding entries

    def pod_changed(self, pod: P) -> None:
        """Queue the current state of a new or changed pod."""
        self._queue.add(self._tracker.capture(self._clock.now(), pod))

    def pod_finished(self, pod: NamedPod) -> None:
        """Queue the end of a pod."""
        self.add_entry(pod, Transition(kind=FINISHED))

    def add_event(
        self, pod: NamedPod, type_: str, reason: str, message: str, container: str = ""
    ) -> None:
        self.add_entry(
            pod,
            Transition(kind=EVENT, subject=container, after=type_, reason=reason, message=message),
        )

    def add_entry(self, pod: NamedPod, transition: Transition, *, at: int | None = None) -> None:
        """Queue a transition, with the current time by default; it counts as an event."""
        at = self._clock.now() if at is None else at
        size = _TRANSITION_BYTES + len(transition.message) + len(transition.reason)
        self._queue.add(QueuedTransition(_entry(at, pod, transition), size))

    def node_changed(self, state: NodeState) -> None:
        """Queue the current state of a new or changed node."""
        self._add_node(self._clock.now(), state)

    def node_removed(self, name: str) -> None:
        self.add_node_entry(name, Transition(kind=FINISHED))

    def add_node_entry(self, name: str, transition: Transition, *, at: int | None = None) -> None:
        """Queue a transition of a node, with the current time by default."""
        at = self._clock.now() if at is None else at
        self._add_node(at, node_entry(name, at, transition))

    def add_node_load(self, sample: NodeLoadSample) -> None:
        self._add_node(sample.at, sample)

    def _add_node(self, at: int, seen: NodeState | HistoryEntry | NodeLoadSample) -> None:
        self._queue.add(QueuedNode(at, seen, estimate_node_size(seen)))

    @property
    def tracked_pods(self) -> int:
        """The number of pods whose last state is in memory."""
        return len(self._tracker)

    @property
    def counts(self) -> HistoryCounts:
        return HistoryCounts(
            written=self._entries_written,
            overflowed=self._queue.dropped_states,
            lost_events=self._queue.dropped_transitions + self._failed_changes,
            waiting=len(self._queue) + self._writing_count,
            replaced=self._files_replaced,
            by_kind=dict(self._by_kind),
            problem="" if self._failures.error is None else str(self._failures.error),
        )

    # Writing

    async def run(self) -> None:
        """Write until cancelled; then write what is queued."""
        due = check_due = 0.0
        try:
            while True:
                await self.write_once()
                self._heartbeat()
                if check_due <= 0:
                    await self.check_once()
                    check_due = _CHECK_SECONDS
                if due <= 0:
                    await self.prune_once()
                    due = _PRUNE_SECONDS
                await self._clock.wait(_PERIOD_SECONDS)
                due -= _PERIOD_SECONDS
                check_due -= _PERIOD_SECONDS
        finally:
            await self._flush()

    async def write_once(self) -> None:
        """Write what is queued now; what cannot be written is queued again.

        Changes that arrive meanwhile are left for the next call: under load there are always more.
        """
        left = len(self._queue)
        while changes := self._queue.pop(min(left, _BATCH_SIZE)):
            if not await self._write_in_thread(changes):
                return
            left -= len(changes)
            self._heartbeat()
            if self._entries_since_prune >= _PRUNE_ENTRIES:
                await self.prune_once()

    async def _flush(self) -> None:
        """Write what is queued on shutdown, in the thread, so that other tasks can finish."""
        try:
            while changes := self._queue.pop(_BATCH_SIZE):
                if not await self._write_in_thread(changes):
                    return
        finally:
            self._thread.shutdown(wait=False)

    async def _write_in_thread(self, changes: list[QueueEntry]) -> bool:
        self._writing_count = len(changes)
        try:
            return await self._run_to_completion(partial(self._write, changes))
        finally:
            self._writing_count = 0

    async def check_once(self) -> None:
        """Detect a file that another program deleted or damaged, and start a new one."""
        try:
            await self._run_to_completion(self._recover_file)
        except HistoryError as error:
            self._failures.failed(error)
        while self._unreported_losses:
            self._on_loss(self._unreported_losses.pop())

    async def prune_once(self) -> None:
        """Delete entries that are too old, and the oldest if the file is too large."""
        self._entries_since_prune = 0
        now = self._clock.monotonic()
        prune = partial(
            self._history.prune,
            elapsed=min(now - self._pruned_at, _MAX_ELAPSED_NANOS),
            max_age=min(int(self._retention.days * _DAY_NANOS), _FOREVER_NANOS),
            max_bytes=self._retention.size,
        )
        try:
            await self._run_to_completion(prune)
        except HistoryError as error:
            self._failures.failed(error)
        else:
            self._pruned_at = now

    async def _run_to_completion(self, work: Callable[[], Result]) -> Result:
        """Run `work` in the thread; a cancelled caller still waits for it."""
        working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait({working})
            raise

    def _write(self, changes: list[QueueEntry]) -> bool:
        """Write a batch; return False if it failed and was queued again."""
        rollbacks = self._tracker.savepoint(), self._nodes.savepoint()

        def rollback() -> None:
            for undo in rollbacks:
                undo()

        try:
            self._recover_file()
            pods = [change for change in changes if not isinstance(change, QueuedNode)]
            entries = [entry for change in pods for entry in self._to_entries(change)]
            nodes = self._nodes.records(it for it in changes if isinstance(it, QueuedNode))
            if entries or nodes.entries or nodes.samples:
                self._history.append(entries, nodes)
        except HistoryError as error:
            rollback()
            self._queue.requeue(changes)
            self._failures.failed(error)
            return False
        except Exception:
            # Drop the batch after a bug: it must neither stop the node nor repeat forever.
            logger.exception("cannot record pod changes: count=%d", len(changes))
            rollback()
            self._failed_changes += len(changes)
            return True
        self._failures.recovered()
        self._count(entries, nodes)
        self._tracker.prune()
        return True

    def _recover_file(self) -> None:
        """Ensure that there is a file to write to. Raises HistoryError."""
        self._is_file_missing, was_broken = True, self._is_file_missing
        if reason := self._history.recover():
            logger.error("history file is lost, starting a new one: %s", reason)
            self._loss_message = reason
            self._files_replaced += 1
            self._unreported_losses.append(reason)
        if self._loss_message:
            self._write_baseline()
        self._is_file_missing = False
        if was_broken:
            self._failures.recovered()

    def _write_baseline(self) -> None:
        """Record all pods as first seen, since their earlier entries are lost."""
        at = self._clock.now()
        gap = Transition(
            kind=AGENT_DOWNTIME,
            duration_seconds=0.0,
            reason=reasons.HISTORY_LOST,
            message=self._loss_message,
        )
        entries = [
            _entry(at, pod, transition)
            for pod, transitions in self._tracker.baselines()
            for transition in (gap, *transitions)
        ]
        nodes = self._nodes.baseline(at, gap)
        if entries or nodes.entries:
            self._history.append(entries, nodes)
        self._loss_message = ""
        self._count(entries, nodes)

    def _count(self, entries: Sequence[HistoryEntry], nodes: NodeRecords) -> None:
        count = len(entries) + len(nodes.entries) + len(nodes.samples)
        self._entries_written += count
        self._entries_since_prune += count
        by_kind = self._by_kind.copy()
        by_kind.update(entry.transition.kind for entry in entries)
        self._by_kind = by_kind

    def _to_entries(self, change: QueuedState[Any] | QueuedTransition) -> list[HistoryEntry]:
        if isinstance(change, QueuedTransition):
            if change.entry.transition.kind == FINISHED:
                self._tracker.finish(change.entry.uid)
            return [change.entry]
        transitions = self._tracker.transitions(change, self._history.last_states)
        return [_entry(change.at, change, transition) for transition in transitions]


class SummaryHistoryWriter(HistoryWriter[PodSummary]):
    """Records every summary of an observer."""

    source = SUMMARY_SOURCE


def _entry(at: int, pod: NamedPod, transition: Transition) -> HistoryEntry:
    return HistoryEntry(
        at=at,
        uid=PodUID(pod.uid),
        namespace=pod.namespace,
        name=pod.name,
        transition=transition,
    )
