"""Queues events from any thread and sends them in the background.

    recorder = EventRecorder(HttpEventSink(client), host="node-a", clock=SystemClock())
    tasks.create_task(recorder.run())
    recorder.normal(container_reference(pod, "app"), reasons.STARTED, "Container started")

Upstream: EventBroadcaster and recorderImpl, client-go v0.36.4, tools/record/event.go.
"""

import asyncio
import logging
import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from podstatus.base.clock import Clock
from podstatus.base.wake_up import WakeUp
from podstatus.events.correlator import Create, EventCorrelator, Patch, Suppressed
from podstatus.events.counts import DropReason, EventCounts
from podstatus.events.new_event import PendingEvent, new_event
from podstatus.events.ports import EventSink
from podstatus.events.rate_limits import EventPolicy
from podstatus.events.sender import EventDelivery, EventSender, describe_event
from podstatus.kube.objects.event import NORMAL, WARNING, Event, EventSource
from podstatus.kube.objects.meta import ObjectReference

logger = logging.getLogger(__name__)

_OVERFLOW_LOG_INTERVAL_NS = 10 * 1_000_000_000
"""Minimum interval between two log lines about a full queue."""

_CLOCK_STEP_NS = 1_000_000_000
"""The wall clock was set back if it is this far behind the last event: timestamps run ahead of the
clock by one nanosecond for each event, and no burst is that large."""

_IDLE_SECONDS = 10.0
"""Interval of the heartbeat while the queue is empty."""


OnRecorded = Callable[[ObjectReference, str, str, str], None]
"""Called with the involved object, type, reason and message, in any thread; must not block."""


class EventRecorder:
    """Records events in the name of one component on one host.

    `normal` and `warn` may be called from any thread; they never block and never raise. Events that
    cannot be sent are dropped and counted by reason in `counts`.
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
        on_recorded: OnRecorded = lambda *_: None,
    ) -> None:
        """`on_recorded` is called for each event when it is recorded, even if it is dropped."""
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
        """The event being sent; it has left the queue."""
        self._lock = threading.Lock()
        """Guards the fields below; held for a few assignments only."""
        self._queue: deque[tuple[PendingEvent, int]] = deque()
        """Each event, and the monotonic time when it was recorded in nanoseconds."""
        self._latest_ns = 0
        self._closed = False
        self._recorded = 0
        self._delivered: Counter[EventDelivery] = Counter()
        self._dropped: Counter[DropReason] = Counter()
        self._overflow_logged = 0
        self._next_overflow_log_ns = 0

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        """Record an event of type Normal: something went as expected."""
        self._record(about, NORMAL, reason, message)

    def warn(
        self,
        about: ObjectReference,
        reason: str,
        message: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record an event of type Warning: something may need attention."""
        self._record(about, WARNING, reason, message, annotations)

    @property
    def counts(self) -> EventCounts:
        """A consistent snapshot of the delivery counts."""
        with self._lock:
            return EventCounts(
                recorded=self._recorded,
                sent=self._delivered[EventDelivery.SENT],
                patched=self._delivered[EventDelivery.PATCHED],
                dropped={cause.value: number for cause, number in self._dropped.items()},
            )

    async def run(self) -> None:
        """Send events until cancelled; `drain` handles what is queued then."""
        while True:
            while await self.send_once():
                pass
            self._heartbeat()
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._wake_up.wait()

    async def send_once(self) -> bool:
        """Send or drop one event, including all retries; return False if the queue was empty."""
        async with self._send_lock:
            self._log_overflow()
            if self._current is None and not self._pop_next():
                return False
            if self._current is not None:
                await self._send(self._current)
                self._current = None
            return True

    async def drain(self, seconds: float) -> None:
        """Try each queued event once, for at most `seconds`, then drop the rest.

        Call it after `run` has ended, while the sink still works. Events recorded afterwards are
        dropped.
        """
        self._sender.max_tries = 1
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self.send_once():
                    pass
        left = self._close()
        if left:
            logger.warning("queued events dropped at shutdown: count=%d", left)

    def _record(
        self,
        about: ObjectReference,
        type: str,
        reason: str,
        message: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        with self._lock:
            self._recorded += 1
            if self._closed:
                self._dropped[DropReason.STOPPED] += 1
            elif len(self._queue) >= self._policy.max_queued:
                self._dropped[DropReason.QUEUE_FULL] += 1
            else:
                self._latest_ns = _next_timestamp(self._latest_ns, self._clock.now())
                pending = PendingEvent(about, type, reason, message, self._latest_ns, annotations)
                self._queue.append((pending, self._clock.monotonic()))
        self._wake_up.set("recorded")
        try:
            self._on_recorded(about, type, reason, message)
        except Exception:
            logger.exception("event callback failed: reason=%s", reason)

    def _pop_next(self) -> bool:
        """Make the next queued event the current one unless suppressed; False if none is queued."""
        with self._lock:
            if not self._queue:
                return False
            pending, recorded_at = self._queue.popleft()
        try:
            event = new_event(pending, self._source)
            correlated = self._correlator.correlate(event, recorded_at)
        except Exception:
            logger.exception("cannot compose event: reason=%s", pending.reason)
            self._drop(DropReason.BROKEN)
            return True
        if isinstance(correlated, Suppressed):
            logger.debug("event suppressed by the rate limit: %s", describe_event(correlated.event))
            self._drop(DropReason.SPAM)
        else:
            self._current = correlated
        return True

    async def _send(self, correlated: Create | Patch) -> None:
        try:
            result = await self._sender.send(correlated)
        except Exception:
            logger.exception(
                "event sink raised an unexpected error: %s", describe_event(correlated.event)
            )
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
        """Reject further events and drop the queued ones; return how many."""
        with self._lock:
            self._closed = True
            left = len(self._queue) + (self._current is not None)
            self._queue.clear()
            self._current = None
            if left:
                self._dropped[DropReason.STOPPED] += left
        return left

    def _log_overflow(self) -> None:
        """Log the events dropped since the last line, at most once per interval."""
        with self._lock:
            dropped = self._dropped[DropReason.QUEUE_FULL]
        now = self._clock.monotonic()
        if dropped > self._overflow_logged and now >= self._next_overflow_log_ns:
            self._next_overflow_log_ns = now + _OVERFLOW_LOG_INTERVAL_NS
            more = dropped - self._overflow_logged
            logger.warning("events dropped because the queue is full: count=%d", more)
            self._overflow_logged = dropped


def _next_timestamp(latest: int, now: int) -> int:
    """Return the timestamp of an event recorded after `latest`, in nanoseconds.

    Event names contain the timestamp, so it must be unique. After the wall clock was set back, it
    is the time of the clock: a timestamp in the future would be wrong. Two events may then get the
    same nanosecond, with the small probability that upstream always accepts.
    """
    return now if latest - now > _CLOCK_STEP_NS else max(latest + 1, now)


def _log_delivery(event: Event, delivery: EventDelivery) -> None:
    level = logging.INFO if delivery is EventDelivery.SENT else logging.DEBUG
    logger.log(
        level, "event %s: %s message=%r", delivery.value, describe_event(event), event.message
    )
