"""What is remembered of pods that could not be synced, and when each is tried again."""

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
    """Why a pod could not be synced, by what is done about it; counted under these names."""

    GONE = "gone"
    CONFLICT = "conflict"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    """What was sent."""
    DENIED = "denied"
    """Who sent it."""
    BROKEN = "broken"
    """Something on our side: a port that raised what it should not, a patch that cannot be made."""


class SyncAttempt(msgspec.Struct, frozen=True):
    """What was tried: a version of a status, at an object."""

    api_uid: ApiUID
    version: int


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that failed."""

    failure: Failure
    attempt: SyncAttempt
    """What failed."""
    failures: int
    """In a row, of whatever kind."""
    probe: bool = False
    """It was sent to see whether the server is there: that it failed is not the pod's fault."""
    at: float
    """When it may be tried again."""
    retry_if_changed_at: float
    """When it may be tried again if it has another version by then."""

    def due(self, version: int) -> float:
        """When it may be tried with this version."""
        return self.at if version == self.attempt.version else self.retry_if_changed_at

    def immediate(self) -> "Retry":
        """The same, but it may be tried now; if it fails again, the waits go on."""
        return structs.replace(self, at=0.0, retry_if_changed_at=0.0, probe=False)


def classify_error(error: Exception) -> Failure:
    """The kind of an error."""
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
    """What to remember after a failure; waits grow with each in a row, whatever went wrong.

    A status that was rejected will be rejected again, so it stays away for the whole
    quarantine, unless it changes. For those that change all the time there are waits too.
    """
    failure = classify_error(error)
    failures = 1 if previous is None else previous.failures + 1
    most = options.rejected_retry_seconds if failure is Failure.GONE else options.max_retry_seconds
    wait = Backoff(
        initial_seconds=options.initial_retry_seconds, max_seconds=most, failures=failures
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
    """Pods that failed, and when the next of them is due."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, Retry] = {}
        self._due: list[tuple[float, PodUID]] = []
        self._wakeups: dict[PodUID, float] = {}

    def __len__(self) -> int:
        """How many failed."""
        return len(self._entries)

    def get(self, uid: PodUID) -> Retry | None:
        """What is known of a pod; None if all is well."""
        return self._entries.get(uid)

    def put(self, uid: PodUID, retry: Retry) -> None:
        """Remember a failure."""
        self._entries[uid] = retry

    def schedule_wakeup(self, uid: PodUID, at: float) -> None:
        """Look at a pod at this moment, if nobody does before it."""
        known = self._wakeups.get(uid)
        if known is None or at < known:
            self._wakeups[uid] = at
            heapq.heappush(self._due, (at, uid))

    def forget(self, uid: PodUID) -> None:
        """All is well with a pod, or it is no more."""
        self._entries.pop(uid, None)

    def retry_now(self, uids: Iterable[PodUID]) -> None:
        """Let these be tried now, if there is anything to send."""
        for uid in uids:
            if (retry := self._entries.get(uid)) is not None:
                self._entries[uid] = retry.immediate()

    def probes(self) -> list[PodUID]:
        """The pods that failed only because the server was not there."""
        return [uid for uid, retry in self._entries.items() if retry.probe]

    def with_failure(self, failures: Collection[Failure]) -> list[PodUID]:
        """The pods that failed like this."""
        return [uid for uid, retry in self._entries.items() if retry.failure in failures]

    def count(self, failure: Failure) -> int:
        """How many pods failed like this. May be asked from any thread."""
        return sum(retry.failure is failure for retry in tuple(self._entries.values()))

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in [uid for uid in self._entries if uid not in uids]:
            del self._entries[uid]

    def pop_due(self, now: float) -> list[PodUID]:
        """The pods that may be due now."""
        due = []
        while self._due and self._due[0][0] <= now:
            at, uid = heapq.heappop(self._due)
            if self._wakeups.get(uid) == at:
                del self._wakeups[uid]
                due.append(uid)
        return due

    def next_due(self) -> float | None:
        """When to look next; None if nobody waits."""
        return self._due[0][0] if self._due else None
