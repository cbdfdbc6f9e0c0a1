"""When a pod that failed to sync is retried. All times are monotonic seconds."""

from enum import Enum

import msgspec
from msgspec import structs

from podstatus.base.backoff import Backoff
from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
)
from podstatus.status.policy import ParallelSyncOptions


class Failure(Enum):
    """Kinds of failures, by the reaction to them. The values are metric labels."""

    GONE = "gone"
    CONFLICT = "conflict"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    """The server rejected the status."""
    DENIED = "denied"
    """The server rejected the client: authentication or authorization failed."""
    BROKEN = "broken"
    """A fault of the node: a port raised an unexpected error, or no patch could be created."""


TRANSIENT_FAILURES = frozenset(
    (Failure.UNAVAILABLE, Failure.BUSY, Failure.CONFLICT, Failure.DENIED, Failure.BROKEN)
)
"""Failures for which a retry may succeed although the status has not changed."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The retry state of a failed pod."""

    failure: Failure
    version: int
    """The version that could not be sent."""
    failures: int
    """Consecutive failures of any kind."""
    probe: bool = False
    """The sync was a probe of an unavailable server: its failure is not specific to the pod."""
    at: float
    """Earliest time of the next attempt."""
    retry_if_changed_at: float
    """Earliest time of the next attempt with another version."""

    def due(self, version: int) -> float:
        """Return the earliest time of an attempt with this version."""
        return self.at if version == self.version else self.retry_if_changed_at

    def immediate(self) -> "Retry":
        """Return a copy that is due now; after a further failure the back-off continues."""
        return structs.replace(self, at=0.0, retry_if_changed_at=0.0, probe=False)


def classify_error(error: Exception) -> Failure:
    """Return the kind of failure for an error."""
    match error:
        case GoneError():
            return Failure.GONE
        case ConflictError():
            return Failure.CONFLICT
        case BusyError():
            return Failure.BUSY
        case DeniedError():
            return Failure.DENIED
        case RejectedError():
            return Failure.REJECTED
        case ApiError():
            return Failure.UNAVAILABLE
    return Failure.BROKEN


def next_retry(
    previous: Retry | None,
    version: int,
    error: Exception,
    options: ParallelSyncOptions,
    *,
    now: float,
    jitter: float,
) -> Retry:
    """Return the retry state after a failure; the back-off grows with each consecutive failure.

    A rejected status would be rejected again, so it is only resent after
    `rejected_retry_seconds`, or when it changes; after a repeated failure, a change waits for
    the back-off, too.
    """
    failure = classify_error(error)
    failures = 1 if previous is None else previous.failures + 1
    max_seconds = (
        options.rejected_retry_seconds if failure is Failure.GONE else options.max_retry_seconds
    )
    wait = Backoff(
        initial_seconds=options.initial_retry_seconds, max_seconds=max_seconds, failures=failures
    ).delay(jitter)
    wait = max(wait, min(_retry_after(error), options.max_retry_seconds))
    rejected = failure is Failure.REJECTED
    return Retry(
        failure=failure,
        version=version,
        failures=failures,
        at=now + (options.rejected_retry_seconds if rejected else wait),
        retry_if_changed_at=now + (0.0 if rejected and failures == 1 else wait),
    )


def _retry_after(error: Exception) -> float:
    after = error.retry_after if isinstance(error, ApiError) else None
    return max(0.0, after or 0.0)  # 0 for NaN, too
