"""One event on its way to the server: tried until it arrives, or until that is hopeless.

Upstream: recordToSink and recordEvent, client-go v0.36.4, tools/record/event.go. There an answer
is final, also 401 or 500, unless it says when to come back; here only what another try will not
change.
"""

import logging
from collections.abc import Callable
from enum import Enum

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.token_bucket import TokenBucket
from podstatus.events.correlator import Create, Repeat
from podstatus.events.counts import Dropped
from podstatus.events.policy import EventPolicy
from podstatus.events.ports import EventSink
from podstatus.kube.errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
)
from podstatus.kube.objects.event import Event

logger = logging.getLogger(__name__)

_TERMINATING = "being terminated"
"""What the server says of a namespace in which nothing can be made any more."""


class Arrived(Enum):
    """How an event reached the server."""

    SENT = "sent"
    PATCHED = "patched"


class Sending:
    """Sends events, one after the other, within a limit of its own."""

    def __init__(
        self,
        sink: EventSink,
        *,
        clock: Clock,
        policy: EventPolicy,
        chance: Callable[[], float],
        beat: Callable[[], None],
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._policy = policy
        self._chance = chance
        self._beat = beat
        self._limit = TokenBucket.per_second(policy.qps, policy.burst) if policy.qps else None
        self._trouble = FailureLog(logger, "sending events")
        self.tries = policy.tries

    async def deliver(self, correlated: Create | Repeat) -> Arrived | Dropped:
        """Try it as often as it takes, or may take."""
        tries = 0
        while True:
            self._beat()
            tries += 1
            try:
                arrived = await self._send(correlated)
            except ApiError as error:
                told, fate = describe(correlated.event), hopeless(error)
                if fate is not None:
                    logger.warning("event refused: %s error=%s", told, error)
                    return fate
                if tries >= self.tries:
                    logger.warning("event given up: %s tries=%d error=%s", told, tries, error)
                    return Dropped.UNDELIVERED
                self._trouble.failed(error)
                await self._clock.wait(self._pause(tries, error))
            else:
                self._trouble.recovered()
                return arrived

    async def _send(self, correlated: Create | Repeat) -> Arrived:
        event = correlated.event
        if isinstance(correlated, Repeat):
            try:
                await self._may_go()
                meta = event.metadata
                await self._sink.patch(meta.namespace, meta.name, correlated.patch)
            except GoneError:
                # The server forgets events after an hour or so.
                pass
            else:
                return Arrived.PATCHED
        try:
            await self._may_go()
            await self._sink.create(event)
        except ConflictError:
            # The names are ours alone: it arrived, but the answer to an earlier try did not.
            logger.debug("event is there already: %s", describe(event))
        return Arrived.SENT

    async def _may_go(self) -> None:
        if self._limit is None:
            return
        while True:
            now = self._clock.now()
            self._limit, allowed = self._limit.try_acquire(now)
            if allowed:
                return
            await self._clock.wait(self._limit.wait_seconds(now))

    def _pause(self, tries: int, error: ApiError) -> float:
        longest = self._policy.retry_seconds
        if isinstance(error, BusyError) and error.retry_after:
            return min(error.retry_after, longest)
        return longest * self._chance() if tries == 1 else longest


def hopeless(error: ApiError) -> Dropped | None:
    """Why it is no use to try again; None if it may be."""
    match error:
        case GoneError():
            return Dropped.NAMESPACE_GONE
        case DeniedError() if _TERMINATING in str(error):
            return Dropped.NAMESPACE_GONE
        case DeniedError(code=401):
            # Nothing else would go through either, until somebody renews what says who we are.
            return None
        case RejectedError():
            return Dropped.REJECTED
    return None


def describe(event: Event) -> str:
    """The event in the form of a log line's keys."""
    about = event.involved_object
    name = f"{about.namespace}/{about.name}" if about.namespace else about.name
    return f"reason={event.reason} object={about.kind}/{name} count={event.count}"
