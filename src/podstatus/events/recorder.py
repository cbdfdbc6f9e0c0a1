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
from podstatus.events.correlator import Create, EventCorrelator, Patch, Suppressed
from podstatus.events.counts import DropReason, EventCounts
from podstatus.events.event import PendingEvent, new_event
from podstatus.events.policy import EventPolicy
from podstatus.events.ports import EventSink
from podstatus.events.sender import EventDelivery, EventSender, describe_event
from podstatus.kube.objects.event import NORMAL, WARNING, Event, EventSource
from podstatus.kube.objects.meta import ObjectReference

logger = logging.getLogger(__name__)

_OVERFLOW_LOG_INTERVAL_NS = 10 * 1_000_000_000
"""Between two lines about events that were dropped."""

_CLOCK_STEP_NS = 1_000_000_000
"""A clock that is so far behind the last event was set back: nobody records so many at once."""

_IDLE_SECONDS = 10.0
"""How long it waits for something to do before it shows that it is alive."""


OnRecorded = Callable[[ObjectReference, str, str, str], None]
"""Told what an event is about, its type, reason and message. In any thread; must not wait."""


def _ignore_event(_about: ObjectReference, _type: str, _reason: str, _message: str) -> None:
    """Nobody wants to know."""


class EventRecorder:
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
        heartbeat: Callable[[], None] = lambda: None,
        random: Callable[[], float] = random.random,
        on_recorded: OnRecorded = _ignore_event,
    ) -> None:
        """`on_recorded` is told of each event at once, whatever becomes of it."""
        self._policy = policy or EventPolicy()
        self._source = EventSource(component=component, host=host)
        self._clock = clock
        self._heartbeat = heartbeat
        self._on_recorded = on_recorded
        self._sender = EventSender(
            sink, clock=clock, policy=self._policy, random=random, heartbeat=heartbeat
        )
        self._correlator = EventCorrelator()
        self._wake_up: WakeUp[str] = WakeUp()
        self._send_lock = asyncio.Lock()
        self._current: Create | Patch | None = None
        """What was taken from the queue and has not come to its end."""
        self._lock = threading.Lock()
        """For what follows, held for a few assignments."""
        self._queue: deque[PendingEvent] = deque()
        self._latest_ns = 0
        self._closed = False
        self._recorded = 0
        self._delivered: Counter[EventDelivery] = Counter()
        self._dropped: Counter[DropReason] = Counter()
        self._overflow_logged = 0
        self._next_overflow_log_ns = 0

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
                sent=self._delivered[EventDelivery.SENT],
                patched=self._delivered[EventDelivery.PATCHED],
                dropped={cause.value: number for cause, number in self._dropped.items()},
            )

    async def run(self) -> None:
        """Send events until it is cancelled; what waits then is for `drain`."""
        while True:
            while await self.send_once():
                pass
            self._heartbeat()
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._wake_up.wait()

    async def send_once(self) -> bool:
        """See one event to its end, however long that takes; whether there was one."""
        async with self._send_lock:
            self._log_overflow()
            if self._current is None and not self._pop_next():
                return False
            if self._current is not None:
                await self._send(self._current)
                self._current = None
            return True

    async def drain(self, seconds: float) -> None:
        """Send what still waits, each tried once, for so long at most; the rest is dropped.

        To be called when `run` has ended, while the sink still works. What is recorded
        afterwards is dropped too.
        """
        self._sender.max_tries = 1
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
                self._dropped[DropReason.STOPPED] += 1
            elif len(self._queue) >= self._policy.max_queued:
                self._dropped[DropReason.QUEUE_FULL] += 1
            else:
                self._latest_ns = _next_timestamp(self._latest_ns, self._clock.now())
                self._queue.append(PendingEvent(about, type, reason, message, self._latest_ns))
        self._wake_up.set("recorded")
        try:
            self._on_recorded(about, type, reason, message)
        except Exception:
            logger.exception("somebody who was told of an event failed: reason=%s", reason)

    def _pop_next(self) -> bool:
        """Take the next event from the queue, if it is worth sending; whether there was one."""
        with self._lock:
            if not self._queue:
                return False
            occurrence = self._queue.popleft()
        try:
            event = new_event(occurrence, self._source)
            correlated = self._correlator.correlate(event, occurrence.at)
        except Exception:
            logger.exception("event cannot be made: reason=%s", occurrence.reason)
            self._drop(DropReason.BROKEN)
            return True
        if isinstance(correlated, Suppressed):
            logger.debug("event held back, too many: %s", describe_event(correlated.event))
            self._drop(DropReason.SPAM)
        else:
            self._current = correlated
        return True

    async def _send(self, correlated: Create | Patch) -> None:
        try:
            result = await self._sender.send(correlated)
        except Exception:
            logger.exception("event cannot be sent: %s", describe_event(correlated.event))
            result = DropReason.BROKEN
        if isinstance(result, DropReason):
            self._drop(result)
            return
        with self._lock:
            self._delivered[result] += 1
        _log_delivery(correlated.event, result)

    def _drop(self, cause: DropReason, number: int = 1) -> None:
        with self._lock:
            self._dropped[cause] += number

    def _close(self) -> int:
        """Take nothing more, and let go of what waits; how many that were."""
        with self._lock:
            self._closed = True
            left = len(self._queue) + (self._current is not None)
            self._queue.clear()
            self._current = None
            if left:
                self._dropped[DropReason.STOPPED] += left
        return left

    def _log_overflow(self) -> None:
        """Say that some were dropped, when one is sent again, and not again for a while."""
        with self._lock:
            dropped = self._dropped[DropReason.QUEUE_FULL]
        if dropped > self._overflow_logged and self._clock.now() >= self._next_overflow_log_ns:
            self._next_overflow_log_ns = self._clock.now() + _OVERFLOW_LOG_INTERVAL_NS
            more = dropped - self._overflow_logged
            logger.warning("events dropped, too many are waiting: number=%d", more)
            self._overflow_logged = dropped


def _next_timestamp(latest: int, now: int) -> int:
    """When an event happened that comes after the latest one.

    Names are made of it, so no two may be the same. After a clock was set back it is what the
    clock shows: a time to come would be wrong, and nothing that is held back would come free. That
    the same nanosecond comes again then is left to chance, as upstream always does.
    """
    return now if latest - now > _CLOCK_STEP_NS else max(latest + 1, now)


def _log_delivery(event: Event, delivery: EventDelivery) -> None:
    level = logging.INFO if delivery is EventDelivery.SENT else logging.DEBUG
    logger.log(
        level, "event %s: %s message=%s", delivery.value, describe_event(event), event.message
    )
