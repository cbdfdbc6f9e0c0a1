"""Tells users what happened: takes events from anybody at once, and sends them when it can.

    recorder = Recorder(HttpEventSink(client), host="node-a", clock=SystemClock())
    tasks.create_task(recorder.run())
    recorder.normal(about_container(pod, "app"), reasons.STARTED, "Container started")

Upstream: EventBroadcaster and recorderImpl, client-go v0.36.4, tools/record/event.go.
"""

import asyncio
import logging
import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

from podstatus.base.aio import WakeUp
from podstatus.base.clock import Clock
from podstatus.events.correlator import Correlator, Create, Repeat, Spam
from podstatus.events.counts import Dropped, EventCounts
from podstatus.events.event import Occurrence, event_of
from podstatus.events.policy import EventPolicy
from podstatus.events.ports import EventSink
from podstatus.events.sender import Arrived, Sending, describe
from podstatus.kube.objects.event import NORMAL, WARNING, Event, EventSource
from podstatus.kube.objects.meta import ObjectReference

logger = logging.getLogger(__name__)

_OVERFLOW_NANOS = 10 * 1_000_000_000
"""Between two lines about events that were dropped."""

_SET_BACK_NANOS = 1_000_000_000
"""A clock that is so far behind the last event was set back: nobody records so many at once."""

_REST_SECONDS = 10.0
"""How long it waits for something to do before it shows that it is alive."""


OnRecorded = Callable[[ObjectReference, str, str, str], None]
"""Told what an event is about, its type, reason and message. In any thread; must not wait."""


def _nobody(_about: ObjectReference, _type: str, _reason: str, _message: str) -> None:
    """Nobody wants to know."""


class Recorder:
    """Records events in the name of one component on one host.

    `normal` and `warn` may be called from any thread; they never block and never raise. What
    cannot be sent is dropped in the end, and `counts` says how many and why.
    """

    def __init__(
        self,
        sink: EventSink,
        *,
        host: str,
        component: str = "kubelet",
        clock: Clock,
        policy: EventPolicy | None = None,
        beat: Callable[[], None] = lambda: None,
        chance: Callable[[], float] = random.random,
        on_recorded: OnRecorded = _nobody,
    ) -> None:
        """`on_recorded` is told of each event at once, whatever becomes of it."""
        self._policy = policy or EventPolicy()
        self._source = EventSource(component=component, host=host)
        self._clock = clock
        self._beat = beat
        self._on_recorded = on_recorded
        self._sending = Sending(sink, clock=clock, policy=self._policy, chance=chance, beat=beat)
        self._correlator = Correlator()
        self._wake: WakeUp[str] = WakeUp()
        self._turn = asyncio.Lock()
        self._in_hand: Create | Repeat | None = None
        """What was taken from the queue and has not come to its end."""
        self._lock = threading.Lock()
        """For what follows, held for a few assignments."""
        self._waiting: deque[Occurrence] = deque()
        self._latest = 0
        self._closed = False
        self._recorded = 0
        self._arrived: Counter[Arrived] = Counter()
        self._dropped: Counter[Dropped] = Counter()
        self._overflow_told = 0
        self._overflow_from = 0

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        """Record an event of type Normal: something went as it should."""
        self._record(about, NORMAL, reason, message)

    def warn(self, about: ObjectReference, reason: str, message: str) -> None:
        """Record an event of type Warning: somebody may have to do something."""
        self._record(about, WARNING, reason, message)

    @property
    def counts(self) -> EventCounts:
        """What became of the events so far, at one moment."""
        with self._lock:
            return EventCounts(
                recorded=self._recorded,
                sent=self._arrived[Arrived.SENT],
                patched=self._arrived[Arrived.PATCHED],
                dropped={cause.value: number for cause, number in self._dropped.items()},
            )

    async def run(self) -> None:
        """Send events until it is cancelled; what waits then is for `drain`."""
        while True:
            while await self.send_once():
                pass
            self._beat()
            with suppress(TimeoutError):
                async with asyncio.timeout(_REST_SECONDS):
                    await self._wake.wait()

    async def send_once(self) -> bool:
        """See one event to its end, however long that takes; whether there was one."""
        async with self._turn:
            self._tell_overflow()
            if self._in_hand is None and not self._take():
                return False
            if self._in_hand is not None:
                await self._deliver(self._in_hand)
                self._in_hand = None
            return True

    async def drain(self, seconds: float) -> None:
        """Send what still waits, each tried once, for so long at most; the rest is dropped.

        To be called when `run` has ended, while the sink still works. What is recorded
        afterwards is dropped too.
        """
        self._sending.tries = 1
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self.send_once():
                    pass
        left = self._close()
        if left:
            logger.warning("events not sent before the end: number=%d", left)

    def _record(self, about: ObjectReference, type: str, reason: str, message: str) -> None:
        with self._lock:
            self._recorded += 1
            if self._closed:
                self._dropped[Dropped.STOPPED] += 1
            elif len(self._waiting) >= self._policy.most_queued:
                self._dropped[Dropped.QUEUE_FULL] += 1
            else:
                self._latest = _moment_after(self._latest, self._clock.now())
                self._waiting.append(Occurrence(about, type, reason, message, self._latest))
        self._wake.set("recorded")
        try:
            self._on_recorded(about, type, reason, message)
        except Exception:
            logger.exception("somebody who was told of an event failed: reason=%s", reason)

    def _take(self) -> bool:
        """Take the next event from the queue, if it is worth sending; whether there was one."""
        with self._lock:
            if not self._waiting:
                return False
            occurrence = self._waiting.popleft()
        try:
            event = event_of(occurrence, self._source)
            correlated = self._correlator.correlate(event, occurrence.at)
        except Exception:
            logger.exception("event cannot be made: reason=%s", occurrence.reason)
            self._drop(Dropped.BROKEN)
            return True
        if isinstance(correlated, Spam):
            logger.debug("event held back, too many: %s", describe(correlated.event))
            self._drop(Dropped.SPAM)
        else:
            self._in_hand = correlated
        return True

    async def _deliver(self, correlated: Create | Repeat) -> None:
        try:
            result = await self._sending.deliver(correlated)
        except Exception:
            logger.exception("event cannot be sent: %s", describe(correlated.event))
            result = Dropped.BROKEN
        if isinstance(result, Dropped):
            self._drop(result)
            return
        with self._lock:
            self._arrived[result] += 1
        _tell(correlated.event, result)

    def _drop(self, cause: Dropped, number: int = 1) -> None:
        with self._lock:
            self._dropped[cause] += number

    def _close(self) -> int:
        """Take nothing more, and let go of what waits; how many that were."""
        with self._lock:
            self._closed = True
            left = len(self._waiting) + (self._in_hand is not None)
            self._waiting.clear()
            self._in_hand = None
            if left:
                self._dropped[Dropped.STOPPED] += left
        return left

    def _tell_overflow(self) -> None:
        """Say that some were dropped, when one is sent again, and not again for a while."""
        with self._lock:
            dropped = self._dropped[Dropped.QUEUE_FULL]
        if dropped > self._overflow_told and self._clock.now() >= self._overflow_from:
            self._overflow_from = self._clock.now() + _OVERFLOW_NANOS
            more = dropped - self._overflow_told
            logger.warning("events dropped, too many are waiting: number=%d", more)
            self._overflow_told = dropped


def _moment_after(latest: int, now: int) -> int:
    """When an event happened that comes after the latest one.

    Names are made of it, so no two may be the same. After a clock was set back it is what the
    clock shows: a time to come would be wrong, and nothing that is held back would come free. That
    the same nanosecond comes again then is left to chance, as upstream always does.
    """
    return now if latest - now > _SET_BACK_NANOS else max(latest + 1, now)


def _tell(event: Event, how: Arrived) -> None:
    level = logging.INFO if how is Arrived.SENT else logging.DEBUG
    logger.log(level, "event %s: %s message=%s", how.value, describe(event), event.message)
