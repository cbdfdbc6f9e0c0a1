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
from podstatus.events.correlator import Create, Patch
from podstatus.events.counts import DropReason
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

_NAMESPACE_TERMINATING = "being terminated"
"""What the server says of a namespace in which nothing can be made any more."""


class EventDelivery(Enum):
    """How an event reached the server."""

    SENT = "sent"
    PATCHED = "patched"


class EventSender:
    """Sends events, one after the other, within a limit of its own."""

    def __init__(
        self,
        sink: EventSink,
        *,
        clock: Clock,
        policy: EventPolicy,
        random: Callable[[], float],
        heartbeat: Callable[[], None],
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._policy = policy
        self._random = random
        self._heartbeat = heartbeat
        self._token_bucket = (
            TokenBucket.per_second(policy.qps, policy.burst) if policy.qps else None
        )
        self._failure_log = FailureLog(logger, "sending events")
        self.max_tries = policy.max_tries

    async def send(self, correlated: Create | Patch) -> EventDelivery | DropReason:
        """Try it as often as it takes, or may take."""
        tries = 0
        while True:
            self._heartbeat()
            tries += 1
            try:
                arrived = await self._try_send(correlated)
            except ApiError as error:
                told, fate = describe_event(correlated.event), permanent_failure(error)
                if fate is not None:
                    logger.warning("event refused: %s error=%s", told, error)
                    return fate
                if tries >= self.max_tries:
                    logger.warning("event given up: %s tries=%d error=%s", told, tries, error)
                    return DropReason.UNDELIVERED
                self._failure_log.failed(error)
                await self._clock.wait(self._retry_delay(tries, error))
            else:
                self._failure_log.recovered()
                return arrived

    async def _try_send(self, correlated: Create | Patch) -> EventDelivery:
        event = correlated.event
        if isinstance(correlated, Patch):
            try:
                await self._acquire_token()
                meta = event.metadata
                await self._sink.patch(meta.namespace, meta.name, correlated.patch)
            except GoneError:
                # The server forgets events after an hour or so.
                pass
            else:
                return EventDelivery.PATCHED
        try:
            await self._acquire_token()
            await self._sink.create(event)
        except ConflictError:
            # The names are ours alone: it arrived, but the answer to an earlier try did not.
            logger.debug("event is there already: %s", describe_event(event))
        return EventDelivery.SENT

    async def _acquire_token(self) -> None:
        if self._token_bucket is None:
            return
        while True:
            now = self._clock.now()
            self._token_bucket, allowed = self._token_bucket.try_acquire(now)
            if allowed:
                return
            await self._clock.wait(self._token_bucket.wait_seconds(now))

    def _retry_delay(self, tries: int, error: ApiError) -> float:
        longest = self._policy.retry_seconds
        if isinstance(error, BusyError) and error.retry_after:
            return min(error.retry_after, longest)
        return longest * self._random() if tries == 1 else longest


def permanent_failure(error: ApiError) -> DropReason | None:
    """Why it is no use to try again; None if it may be."""
    match error:
        case GoneError():
            return DropReason.NAMESPACE_GONE
        case DeniedError() if _NAMESPACE_TERMINATING in str(error):
            return DropReason.NAMESPACE_GONE
        case DeniedError(code=401):
            # Nothing else would go through either, until somebody renews what says who we are.
            return None
        case RejectedError():
            return DropReason.REJECTED
    return None


def describe_event(event: Event) -> str:
    """The event in the form of a log line's keys."""
    about = event.involved_object
    name = f"{about.namespace}/{about.name}" if about.namespace else about.name
    return f"reason={event.reason} object={about.kind}/{name} count={event.count}"
