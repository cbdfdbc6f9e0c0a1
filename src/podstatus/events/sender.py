"""Sends one event at a time, and retries until it is delivered or the failure is permanent.

Upstream: recordToSink and recordEvent, client-go v0.36.4, tools/record/event.go. There every
response is final, including 401 and 500, unless it has a Retry-After. Here only those are final
that another try cannot change.
"""

import logging
from collections.abc import Callable
from enum import Enum

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.rate_limiter import RateLimiter
from podstatus.events.correlator import Create, Patch
from podstatus.events.counts import DropReason
from podstatus.events.ports import EventSink
from podstatus.events.rate_limits import EventPolicy
from podstatus.kube.api_errors import (
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
"""Part of the server's message when it rejects an object in a terminating namespace."""


class EventDelivery(Enum):
    """How an event reached the server."""

    SENT = "sent"
    PATCHED = "patched"


class EventSender:
    """Sends events one after the other, with its own rate limit."""

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
        self._rate_limiter = RateLimiter(policy.qps, policy.burst, clock) if policy.qps else None
        self._failure_log = FailureLog(logger, "sending events")
        self.max_tries = policy.max_tries

    async def send(self, correlated: Create | Patch) -> EventDelivery | DropReason:
        """Send an event, retrying up to `max_tries` times; return the delivery or drop reason."""
        tries = 0
        while True:
            self._heartbeat()
            tries += 1
            try:
                delivery = await self._try_send(correlated)
            except ApiError as error:
                event, reason = describe_event(correlated.event), permanent_failure(error)
                if reason is not None:
                    logger.warning("event rejected by the API server: %s error=%s", event, error)
                    return reason
                if tries >= self.max_tries:
                    logger.warning(
                        "event dropped after too many attempts: %s attempts=%d error=%s",
                        event,
                        tries,
                        error,
                    )
                    return DropReason.UNDELIVERED
                self._failure_log.failed(error)
                await self._clock.wait(self._retry_delay(tries, error))
            else:
                self._failure_log.recovered()
                return delivery

    async def _try_send(self, correlated: Create | Patch) -> EventDelivery:
        event = correlated.event
        if isinstance(correlated, Patch):
            try:
                await self._acquire_token()
                meta = event.metadata
                await self._sink.patch(meta.namespace, meta.name, correlated.patch)
            except GoneError:
                # The server deletes events after their TTL, one hour by default.
                pass
            else:
                return EventDelivery.PATCHED
        try:
            await self._acquire_token()
            await self._sink.create(event)
        except ConflictError:
            # The names are unique: an earlier try succeeded, but its response was lost.
            logger.debug("event already exists: %s", describe_event(event))
        return EventDelivery.SENT

    async def _acquire_token(self) -> None:
        if self._rate_limiter is not None:
            await self._rate_limiter.wait()

    def _retry_delay(self, tries: int, error: ApiError) -> float:
        max_delay = self._policy.retry_seconds
        if isinstance(error, BusyError) and error.retry_after:
            return min(error.retry_after, max_delay)
        return max_delay * self._random() if tries == 1 else max_delay


def permanent_failure(error: ApiError) -> DropReason | None:
    """Return the drop reason if a retry cannot succeed, otherwise None."""
    match error:
        case GoneError():
            return DropReason.NAMESPACE_GONE
        case DeniedError() if _NAMESPACE_TERMINATING in str(error):
            return DropReason.NAMESPACE_GONE
        case DeniedError(code=401):
            # All other requests fail as well until the credentials are renewed.
            return None
        case RejectedError():
            return DropReason.REJECTED
    return None


def describe_event(event: Event) -> str:
    """Return the event as the keys of a log line."""
    about = event.involved_object
    name = f"{about.namespace}/{about.name}" if about.namespace else about.name
    field = f" field={about.field_path}" if about.field_path else ""
    return f"reason={event.reason} object={about.kind}/{name}{field} count={event.count}"
