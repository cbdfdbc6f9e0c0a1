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
from podstatus.observe.history.store import History, HistoryError, Moment
from podstatus.observe.history.write_queue import MOST_BYTES, MOST_WAITING, Change, Note, Unwritten
from podstatus.observe.transitions.status_transitions import AWAY, EVENT, FINISHED, Transition
from podstatus.observe.transitions.tracker import LastSeen, P

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_PERIOD_SECONDS = 0.25
"""Between two writes; so a kill loses less than half a second."""
_BATCH = 500
"""Changes that are worked out and written at once. A pod that is seen first is a dozen moments;
with 2,000 pods at a time, as after the first list of a cluster, memory grows for good by a third
of what an observer takes."""
_CHECK_SECONDS = 1.0
"""Between two looks whether the file is still there."""
_CLEAN_SECONDS = 60.0
_CLEAN_MOMENTS = 20_000
"""After so many it is cleaned too, so that a flood does not fill the disk: some 2 MB."""
_MAX_PASSED_NANOS = round(10 * _CLEAN_SECONDS * 1e9)
"""What counts of the time between two cleanings. More passes only while the process is stopped, or
where a monotonic clock is faked."""
_DAY_NANOS = 24 * 3600 * 1_000_000_000
_FOREVER_NANOS = 2**62
"""146 years; more does not fit into a database."""
_NOTE_BYTES = 500


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept."""

    days: float = 7.0
    """Of time that the history is written: an agent that does not run counts none, and a wall clock
    that is set does not matter."""
    size: int = 256 * 2**20
    """Bytes of the file; about 110 for a moment."""


class HistoryCounts(msgspec.Struct, frozen=True, kw_only=True):
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


Entry: TypeAlias = Change[Any] | Note


class Scribe(Generic[P]):
    """Notes all that it is told. It may be told from any thread."""

    def __init__(
        self,
        history: History,
        seen: LastSeen[P, Any],
        *,
        clock: Clock,
        retention: Retention | None = None,
        most_waiting: int = MOST_WAITING,
        most_bytes: int = MOST_BYTES,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._history = history
        self._seen = seen
        self._clock = clock
        self._retention = retention or Retention()
        self._beat = beat
        self._waiting: Unwritten[Any] = Unwritten(most_waiting, most_bytes)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")
        self._written = self._mistaken = 0
        """Moments, and changes that could not be noted; counted by the thread that writes."""
        self._by_kind: Counter[str] = Counter()
        self._since_clean = 0
        self._cleaned_at = clock.monotonic()
        self._in_hand = 0
        """Changes that are being written."""
        self._trouble = FailureLog(logger, "the history", expected=HistoryError)
        self._is_broken = False
        """Whether the file is gone, and no new one could be made yet."""
        self._lost = ""
        """What happened to the last file, until the new one says so."""
        self._replaced = 0
        self._unreported: list[str] = []
        self.on_lost: Callable[[str], None] = lambda _: None
        """Called in the event loop with what happened to a file that was lost."""

    # What it is told

    def told(self, pod: P) -> None:
        """The pod is new, or has changed: it is like this now."""
        self._waiting.add(self._seen.change(self._clock.now(), pod))

    def gone(self, pod: NamedPod) -> None:
        """The pod has reached the end of its life."""
        self.note(pod, Transition(kind=FINISHED))

    def event(
        self, pod: NamedPod, type_: str, reason: str, message: str, container: str = ""
    ) -> None:
        """Something was said of the pod in an event."""
        self.note(
            pod,
            Transition(kind=EVENT, subject=container, after=type_, reason=reason, message=message),
        )

    def note(self, pod: NamedPod, note: Transition, *, at: int | None = None) -> None:
        """Something else happened to the pod, now or at that time; it counts as an event."""
        at = self._clock.now() if at is None else at
        size = _NOTE_BYTES + len(note.message) + len(note.reason)
        entry = Note(at, PodUID(pod.uid), pod.namespace, pod.name, note, size)
        self._waiting.add(entry)

    @property
    def counts(self) -> HistoryCounts:
        """What became of the changes so far."""
        return HistoryCounts(
            written=self._written,
            overflowed=self._waiting.refused_changes,
            lost_events=self._waiting.refused_notes + self._mistaken,
            waiting=len(self._waiting) + self._in_hand,
            replaced=self._replaced,
            by_kind=dict(self._by_kind),
            problem="" if self._trouble.error is None else str(self._trouble.error),
        )

    # What it does

    async def run(self) -> None:
        """Write until cancelled; then what is left."""
        due = check_due = 0.0
        try:
            while True:
                await self.write_once()
                self._beat()
                if check_due <= 0:
                    await self.check_once()
                    check_due = _CHECK_SECONDS
                if due <= 0:
                    await self.clean_once()
                    due = _CLEAN_SECONDS
                await self._clock.wait(_PERIOD_SECONDS)
                due -= _PERIOD_SECONDS
                check_due -= _PERIOD_SECONDS
        finally:
            await self._write_rest()

    async def write_once(self) -> None:
        """Write what waits now. What cannot be written waits on.

        What comes meanwhile is for the next time: under load there is always more.
        """
        left = len(self._waiting)
        while changes := self._waiting.take(min(left, _BATCH)):
            if not await self._write_in_thread(changes):
                return
            left -= len(changes)
            self._beat()
            if self._since_clean >= _CLEAN_MOMENTS:
                await self.clean_once()

    async def _write_rest(self) -> None:
        """Write what is left while others come to their end, too: the loop is theirs."""
        try:
            while changes := self._waiting.take(_BATCH):
                if not await self._write_in_thread(changes):
                    return
        finally:
            self._thread.shutdown(wait=False)

    async def _write_in_thread(self, changes: list[Entry]) -> bool:
        self._in_hand = len(changes)
        try:
            return await self._to_its_end(partial(self._write, changes))
        finally:
            self._in_hand = 0

    async def check_once(self) -> None:
        """Notice a file that other programs deleted or damaged, and begin a new one."""
        try:
            await self._to_its_end(self._mend)
        except HistoryError as error:
            self._trouble.failed(error)
        self._report()

    def _report(self) -> None:
        while self._unreported:
            self.on_lost(self._unreported.pop())

    async def clean_once(self) -> None:
        """Forget what is too old, and the oldest if there is too much."""
        self._since_clean = 0
        now = self._clock.monotonic()
        forget = partial(
            self._history.forget,
            passed=min(now - self._cleaned_at, _MAX_PASSED_NANOS),
            keep=min(int(self._retention.days * _DAY_NANOS), _FOREVER_NANOS),
            size=self._retention.size,
        )
        try:
            await self._to_its_end(forget)
        except HistoryError as error:
            self._trouble.failed(error)
        else:
            self._cleaned_at = now

    async def _to_its_end(self, work: Callable[[], Result]) -> Result:
        """Do it in the thread; who is cancelled meanwhile waits for it all the same."""
        working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait({working})
            raise

    def _write(self, changes: list[Entry]) -> bool:
        """Write these. False if it could not be: then they wait as before."""
        go_back = self._seen.mark()
        try:
            self._mend()
            moments = [moment for entry in changes for moment in self._moments(entry)]
            if moments:
                self._history.append(moments)
        except HistoryError as error:
            go_back()
            self._waiting.put_back(changes)
            self._trouble.failed(error)
            return False
        except Exception:
            # A mistake of ours is not to end the node, nor to be made again and again.
            logger.exception("changes of pods not noted: number=%d", len(changes))
            go_back()
            self._mistaken += len(changes)
            return True
        self._trouble.recovered()
        self._count(moments)
        self._seen.forget_quiet()
        return True

    def _mend(self) -> None:
        """See that there is a file to write to. Raises HistoryError."""
        self._is_broken, was_broken = True, self._is_broken
        if happened := self._history.mend():
            logger.error("the history is lost, a new one begins: %s", happened)
            self._lost = happened
            self._replaced += 1
            self._unreported.append(happened)
        if self._lost:
            self._note_all()
        self._is_broken = False
        if was_broken:
            self._trouble.recovered()

    def _note_all(self) -> None:
        """Note all pods as if they were seen first: what was noted before is lost."""
        at = self._clock.now()
        gap = Transition(
            kind=AWAY, after="0.000 s", reason=reasons.HISTORY_LOST, message=self._lost
        )
        moments = [
            Moment(
                at=at,
                uid=PodUID(pod.uid),
                namespace=pod.namespace,
                name=pod.name,
                transition=transition,
            )
            for pod, noted in self._seen.first_sights()
            for transition in (gap, *noted)
        ]
        if moments:
            self._history.append(moments)
        self._lost = ""
        self._count(moments)

    def _count(self, moments: Sequence[Moment]) -> None:
        self._written += len(moments)
        self._since_clean += len(moments)
        by_kind = self._by_kind.copy()
        by_kind.update(moment.transition.kind for moment in moments)
        self._by_kind = by_kind

    def _moments(self, entry: Entry) -> list[Moment]:
        if isinstance(entry, Change):
            noted = self._seen.changes(entry, self._history.last_of)
        else:
            noted = [entry.note]
            if entry.note.kind == FINISHED:
                self._seen.finish(entry.uid)
        return [
            Moment(
                at=entry.at,
                uid=entry.uid,
                namespace=entry.namespace,
                name=entry.name,
                transition=transition,
            )
            for transition in noted
        ]
