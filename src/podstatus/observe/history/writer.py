"""Writes the history: takes what is told of pods at once, and notes it a moment later.

    scribe = Scribe(History.open(path), LastSeen(SUMMARIES), clock=clock)
    scribe.told(summary)
    tasks.create_task(scribe.run())

Who tells it waits for nothing: a change is put into a queue, and the difference to what was told
before is worked out by the one who writes, many at a time. The queue is bounded; what does not
fit is counted, and the next change of that pod is noted against the last that did. What it does
with the disk it does in a thread of its own. A file that other programs delete or damage is noticed
within a second: a new one begins with all pods as they are.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.events import reasons
from podstatus.kube.objects.meta import NamedPod
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.store import History, HistoryEntry, HistoryError
from podstatus.observe.history.write_queue import (
    MAX_BYTES,
    MAX_ENTRIES,
    QueuedState,
    QueuedTransition,
    WriteQueue,
)
from podstatus.observe.transitions.status_transitions import (
    AGENT_DOWNTIME,
    EVENT,
    FINISHED,
    Transition,
)
from podstatus.observe.transitions.tracker import P, TransitionTracker

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_PERIOD_SECONDS = 0.25
"""Between two writes; so a kill loses less than half a second."""
_BATCH_SIZE = 500
"""Changes that are worked out and written at once. A pod that is seen first is a dozen moments;
with 2,000 pods at a time, as after the first list of a cluster, memory grows for good by a third
of what an observer takes."""
_CHECK_SECONDS = 1.0
"""Between two looks whether the file is still there."""
_PRUNE_SECONDS = 60.0
_PRUNE_ENTRIES = 20_000
"""After so many it is cleaned too, so that a flood does not fill the disk: some 2 MB."""
_MAX_ELAPSED_NANOS = round(10 * _PRUNE_SECONDS * 1e9)
"""What counts of the time between two cleanings. More passes only while the process is stopped, or
where a monotonic clock is faked."""
_DAY_NANOS = 24 * 3600 * 1_000_000_000
_FOREVER_NANOS = 2**62
"""146 years; more does not fit into a database."""
_TRANSITION_BYTES = 500


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept."""

    days: float = 7.0
    """Of time that the history is written: an agent that does not run counts none, and a wall clock
    that is set does not matter."""
    size: int = 256 * 2**20
    """Bytes of the file; about 110 for a moment."""


class HistoryCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of the changes so far."""

    written: int = 0
    """Moments."""
    overflowed: int = 0
    """Changes that found the queue full: what they changed is noted with the next one."""
    lost_events: int = 0
    """Events that found it full, or could not be noted at all: they are noted nowhere."""
    waiting: int = 0
    replaced: int = 0
    """Files that were lost while they were written, and replaced by new ones."""
    by_kind: Mapping[str, int] = {}
    """Moments, by the kind of their transition."""
    problem: str = ""
    """Why nothing is written at the moment, or at all."""


QueueEntry: TypeAlias = QueuedState[Any] | QueuedTransition


class HistoryWriter(Generic[P]):
    """Notes all that it is told. It may be told from any thread."""

    def __init__(
        self,
        history: History,
        tracker: TransitionTracker[P, Any],
        *,
        clock: Clock,
        retention: Retention | None = None,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._history = history
        self._tracker = tracker
        self._clock = clock
        self._retention = retention or Retention()
        self._heartbeat = heartbeat
        self._queue: WriteQueue[Any] = WriteQueue(max_entries, max_bytes)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")
        self._entries_written = self._failed_changes = 0
        """Moments, and changes that could not be noted; counted by the thread that writes."""
        self._by_kind: Counter[str] = Counter()
        self._entries_since_prune = 0
        self._pruned_at = clock.monotonic()
        self._writing_count = 0
        """Changes that are being written."""
        self._failures = FailureLog(logger, "the history", expected=HistoryError)
        self._is_file_missing = False
        """Whether the file is gone, and no new one could be made yet."""
        self._loss_message = ""
        """What happened to the last file, until the new one says so."""
        self._files_replaced = 0
        self._unreported_losses: list[str] = []
        self.on_loss: Callable[[str], None] = lambda _: None
        """Called in the event loop with what happened to a file that was lost."""

    # What it is told

    def pod_changed(self, pod: P) -> None:
        """The pod is new, or has changed: it is like this now."""
        self._queue.add(self._tracker.capture(self._clock.now(), pod))

    def pod_finished(self, pod: NamedPod) -> None:
        """The pod has reached the end of its life."""
        self.add_entry(pod, Transition(kind=FINISHED))

    def add_event(
        self, pod: NamedPod, type_: str, reason: str, message: str, container: str = ""
    ) -> None:
        """Something was said of the pod in an event."""
        self.add_entry(
            pod,
            Transition(kind=EVENT, subject=container, after=type_, reason=reason, message=message),
        )

    def add_entry(self, pod: NamedPod, transition: Transition, *, at: int | None = None) -> None:
        """Something else happened to the pod, now or at that time; it counts as an event."""
        at = self._clock.now() if at is None else at
        size = _TRANSITION_BYTES + len(transition.message) + len(transition.reason)
        entry = QueuedTransition(at, PodUID(pod.uid), pod.namespace, pod.name, transition, size)
        self._queue.add(entry)

    @property
    def counts(self) -> HistoryCounts:
        """What became of the changes so far."""
        return HistoryCounts(
            written=self._entries_written,
            overflowed=self._queue.dropped_states,
            lost_events=self._queue.dropped_transitions + self._failed_changes,
            waiting=len(self._queue) + self._writing_count,
            replaced=self._files_replaced,
            by_kind=dict(self._by_kind),
            problem="" if self._failures.error is None else str(self._failures.error),
        )

    # What it does

    async def run(self) -> None:
        """Write until cancelled; then what is left."""
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
        """Write what waits now. What cannot be written waits on.

        What comes meanwhile is for the next time: under load there is always more.
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
        """Write what is left while others come to their end, too: the loop is theirs."""
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
        """Notice a file that other programs deleted or damaged, and begin a new one."""
        try:
            await self._run_to_completion(self._recover_file)
        except HistoryError as error:
            self._failures.failed(error)
        self._report_losses()

    def _report_losses(self) -> None:
        while self._unreported_losses:
            self.on_loss(self._unreported_losses.pop())

    async def prune_once(self) -> None:
        """Forget what is too old, and the oldest if there is too much."""
        self._entries_since_prune = 0
        now = self._clock.monotonic()
        forget = partial(
            self._history.prune,
            elapsed=min(now - self._pruned_at, _MAX_ELAPSED_NANOS),
            max_age=min(int(self._retention.days * _DAY_NANOS), _FOREVER_NANOS),
            max_bytes=self._retention.size,
        )
        try:
            await self._run_to_completion(forget)
        except HistoryError as error:
            self._failures.failed(error)
        else:
            self._pruned_at = now

    async def _run_to_completion(self, work: Callable[[], Result]) -> Result:
        """Do it in the thread; who is cancelled meanwhile waits for it all the same."""
        working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait({working})
            raise

    def _write(self, changes: list[QueueEntry]) -> bool:
        """Write these. False if it could not be: then they wait as before."""
        go_back = self._tracker.savepoint()
        try:
            self._recover_file()
            moments = [moment for entry in changes for moment in self._to_entries(entry)]
            if moments:
                self._history.append(moments)
        except HistoryError as error:
            go_back()
            self._queue.requeue(changes)
            self._failures.failed(error)
            return False
        except Exception:
            # A mistake of ours is not to end the node, nor to be made again and again.
            logger.exception("changes of pods not noted: number=%d", len(changes))
            go_back()
            self._failed_changes += len(changes)
            return True
        self._failures.recovered()
        self._count(moments)
        self._tracker.prune()
        return True

    def _recover_file(self) -> None:
        """See that there is a file to write to. Raises HistoryError."""
        self._is_file_missing, was_broken = True, self._is_file_missing
        if happened := self._history.recover():
            logger.error("the history is lost, a new one begins: %s", happened)
            self._loss_message = happened
            self._files_replaced += 1
            self._unreported_losses.append(happened)
        if self._loss_message:
            self._write_baseline()
        self._is_file_missing = False
        if was_broken:
            self._failures.recovered()

    def _write_baseline(self) -> None:
        """Note all pods as if they were seen first: what was noted before is lost."""
        at = self._clock.now()
        gap = Transition(
            kind=AGENT_DOWNTIME,
            after="0.000 s",
            reason=reasons.HISTORY_LOST,
            message=self._loss_message,
        )
        moments = [
            HistoryEntry(
                at=at,
                uid=PodUID(pod.uid),
                namespace=pod.namespace,
                name=pod.name,
                transition=transition,
            )
            for pod, noted in self._tracker.baselines()
            for transition in (gap, *noted)
        ]
        if moments:
            self._history.append(moments)
        self._loss_message = ""
        self._count(moments)

    def _count(self, moments: Sequence[HistoryEntry]) -> None:
        self._entries_written += len(moments)
        self._entries_since_prune += len(moments)
        by_kind = self._by_kind.copy()
        by_kind.update(moment.transition.kind for moment in moments)
        self._by_kind = by_kind

    def _to_entries(self, entry: QueueEntry) -> list[HistoryEntry]:
        if isinstance(entry, QueuedState):
            noted = self._tracker.transitions(entry, self._history.last_states)
        else:
            noted = [entry.transition]
            if entry.transition.kind == FINISHED:
                self._tracker.finish(entry.uid)
        return [
            HistoryEntry(
                at=entry.at,
                uid=entry.uid,
                namespace=entry.namespace,
                name=entry.name,
                transition=transition,
            )
            for transition in noted
        ]
