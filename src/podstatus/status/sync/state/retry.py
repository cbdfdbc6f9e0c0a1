"""The retry state of pods that failed to sync. All times are monotonic seconds."""

import heapq
from collections.abc import Collection, Iterable
from enum import Enum

import msgspec
from msgspec import structs

from podstatus.base.backoff import Backoff
from podstatus.kube.errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
)
from podstatus.kube.objects.pod import ApiUID, PodUID
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


class SyncAttempt(msgspec.Struct, frozen=True):
    """An attempt to send a version of a status to an API object."""

    api_uid: ApiUID
    version: int


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The retry state of a failed pod."""

    failure: Failure
    attempt: SyncAttempt
    """The failed attempt."""
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
        return self.at if version == self.attempt.version else self.retry_if_changed_at

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
    attempt: SyncAttempt,
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
        attempt=attempt,
        failures=failures,
        at=now + (options.rejected_retry_seconds if rejected else wait),
        retry_if_changed_at=now + (0.0 if rejected and failures == 1 else wait),
    )


def _retry_after(error: Exception) -> float:
    after = error.retry_after if isinstance(error, ApiError) else None
    return after if after is not None and after > 0 else 0.0


class RetryTable:
    """The retry states of failed pods, and the next wake-up."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, Retry] = {}
        self._due: list[tuple[float, PodUID]] = []
        self._wakeups: dict[PodUID, float] = {}

    def __len__(self) -> int:
        """Return the number of failed pods."""
        return len(self._entries)

    def get(self, uid: PodUID) -> Retry | None:
        """Return the pod's retry state; None if its last sync succeeded."""
        return self._entries.get(uid)

    def put(self, uid: PodUID, retry: Retry) -> None:
        """Store the retry state of a pod."""
        self._entries[uid] = retry

    def schedule_wakeup(self, uid: PodUID, at: float) -> None:
        """Schedule a wake-up for the pod, unless it has an earlier one."""
        scheduled = self._wakeups.get(uid)
        if scheduled is None or at < scheduled:
            self._wakeups[uid] = at
            heapq.heappush(self._due, (at, uid))

    def forget(self, uid: PodUID) -> None:
        """Remove the state of a pod that succeeded or was deleted."""
        self._entries.pop(uid, None)

    def retry_now(self, uids: Iterable[PodUID]) -> None:
        """Make these pods due now."""
        for uid in uids:
            if (retry := self._entries.get(uid)) is not None:
                self._entries[uid] = retry.immediate()

    def probes(self) -> list[PodUID]:
        """Return the pods that failed as probes of an unavailable server."""
        return [uid for uid, retry in self._entries.items() if retry.probe]

    def with_failure(self, failures: Collection[Failure]) -> list[PodUID]:
        """Return the pods whose last failure is one of these."""
        return [uid for uid, retry in self._entries.items() if retry.failure in failures]

    def count(self, failure: Failure) -> int:
        """Return the number of pods with this failure. Thread-safe."""
        return sum(retry.failure is failure for retry in tuple(self._entries.values()))

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Remove all pods except those with these UIDs."""
        for uid in [uid for uid in self._entries if uid not in uids]:
            del self._entries[uid]

    def pop_due(self, now: float) -> list[PodUID]:
        """Remove and return the pods whose wake-up has passed."""
        due = []
        while self._due and self._due[0][0] <= now:
            at, uid = heapq.heappop(self._due)
            if self._wakeups.get(uid) == at:
                del self._wakeups[uid]
                due.append(uid)
        return due

    def next_due(self) -> float | None:
        """Return the time of the next wake-up, or None."""
        return self._due[0][0] if self._due else None
