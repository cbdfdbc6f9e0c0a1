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
from podstatus.status.policy import Sending


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


class Attempt(msgspec.Struct, frozen=True):
    """What was tried: a version of a status, at an object."""

    api_uid: ApiUID
    version: int


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that failed."""

    failure: Failure
    attempt: Attempt
    """What failed."""
    failures: int
    """In a row, of whatever kind."""
    probe: bool = False
    """It was sent to see whether the server is there: that it failed is not the pod's fault."""
    at: float
    """When it may be tried again."""
    changed_at: float
    """When it may be tried again if it has another version by then."""

    def due(self, version: int) -> float:
        """When it may be tried with this version."""
        return self.at if version == self.attempt.version else self.changed_at

    def hastened(self) -> "Retry":
        """The same, but it may be tried now; if it fails again, the waits go on."""
        return structs.replace(self, at=0.0, changed_at=0.0, probe=False)


def failure_of(error: Exception) -> Failure:
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
    known: Retry | None,
    attempt: Attempt,
    error: Exception,
    sending: Sending,
    *,
    now: float,
    chance: float,
) -> Retry:
    """What to remember after a failure; waits grow with each in a row, whatever went wrong.

    A status that was rejected will be rejected again, so it stays away for the whole
    quarantine, unless it changes. For those that change all the time there are waits too.
    """
    failure = failure_of(error)
    failures = 1 if known is None else known.failures + 1
    most = sending.quarantine if failure is Failure.GONE else sending.longest_retry
    wait = Backoff(initial_seconds=sending.first_retry, max_seconds=most, failures=failures).delay(
        chance
    )
    wait = max(wait, min(_asked_for(error), sending.longest_retry))
    rejected = failure is Failure.REJECTED
    return Retry(
        failure=failure,
        attempt=attempt,
        failures=failures,
        at=now + (sending.quarantine if rejected else wait),
        changed_at=now + (0.0 if rejected and failures == 1 else wait),
    )


def _asked_for(error: Exception) -> float:
    after = error.retry_after if isinstance(error, ApiError) else None
    return after if after is not None and after > 0 else 0.0


class Retries:
    """Pods that failed, and when the next of them is due."""

    def __init__(self) -> None:
        self._known: dict[PodUID, Retry] = {}
        self._due: list[tuple[float, PodUID]] = []
        self._reminded: dict[PodUID, float] = {}

    def __len__(self) -> int:
        """How many failed."""
        return len(self._known)

    def get(self, uid: PodUID) -> Retry | None:
        """What is known of a pod; None if all is well."""
        return self._known.get(uid)

    def put(self, uid: PodUID, retry: Retry) -> None:
        """Remember a failure."""
        self._known[uid] = retry

    def remind(self, uid: PodUID, at: float) -> None:
        """Look at a pod at this moment, if nobody does before it."""
        known = self._reminded.get(uid)
        if known is None or at < known:
            self._reminded[uid] = at
            heapq.heappush(self._due, (at, uid))

    def forget(self, uid: PodUID) -> None:
        """All is well with a pod, or it is no more."""
        self._known.pop(uid, None)

    def hasten(self, uids: Iterable[PodUID]) -> None:
        """Let these be tried now, if there is anything to send."""
        for uid in uids:
            if (retry := self._known.get(uid)) is not None:
                self._known[uid] = retry.hastened()

    def probes(self) -> list[PodUID]:
        """The pods that failed only because the server was not there."""
        return [uid for uid, retry in self._known.items() if retry.probe]

    def of(self, failures: Collection[Failure]) -> list[PodUID]:
        """The pods that failed like this."""
        return [uid for uid, retry in self._known.items() if retry.failure in failures]

    def count(self, failure: Failure) -> int:
        """How many pods failed like this. May be asked from any thread."""
        return sum(retry.failure is failure for retry in tuple(self._known.values()))

    def keep(self, known: Collection[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in [uid for uid in self._known if uid not in known]:
            del self._known[uid]

    def take_due(self, now: float) -> list[PodUID]:
        """The pods that may be due now."""
        due = []
        while self._due and self._due[0][0] <= now:
            at, uid = heapq.heappop(self._due)
            if self._reminded.get(uid) == at:
                del self._reminded[uid]
                due.append(uid)
        return due

    def next_due(self) -> float | None:
        """When to look next; None if nobody waits."""
        return self._due[0][0] if self._due else None
