"""What is remembered of pods that could not be synced, and when each is tried again."""

import heapq
from enum import Enum

import msgspec

from podstatus.base.backoff import Backoff
from podstatus.kube.errors import ApiError, BusyError, ConflictError, GoneError, RejectedError
from podstatus.kube.pod import PodUID
from podstatus.status.policy import Sending


class Failure(Enum):
    """Why a pod could not be synced, by what is done about it; counted under these names."""

    GONE = "gone"
    CONFLICT = "conflict"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    BROKEN = "broken"
    """Something on our side: a port that raised what it should not, a patch that cannot be made."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that failed."""

    failure: Failure
    version: int
    """The version that failed."""
    failures: int
    """In a row, of this kind."""
    at: float
    """When it may be tried again."""
    changed_at: float
    """When it may be tried again if it has another version by then."""

    def may_go(self, version: int, now: float) -> bool:
        """Whether it may be tried now, with this version."""
        return now >= (self.at if version == self.version else self.changed_at)


def failure_of(error: Exception) -> Failure:
    """The kind of an error."""
    match error:
        case GoneError():
            return Failure.GONE
        case ConflictError():
            return Failure.CONFLICT
        case BusyError():
            return Failure.BUSY
        case RejectedError():
            return Failure.REJECTED
        case ApiError():
            return Failure.UNAVAILABLE
    return Failure.BROKEN


def next_retry(
    known: Retry | None,
    version: int,
    error: Exception,
    sending: Sending,
    *,
    now: float,
    chance: float,
) -> Retry:
    """What to remember after a failure; waits grow while it is always the same one.

    A status that was rejected will be rejected again, so it stays away for the whole
    quarantine, unless it changes. For those that change all the time there are waits too.
    """
    failure = failure_of(error)
    failures = known.failures + 1 if known is not None and known.failure is failure else 1
    most = sending.quarantine if failure is Failure.GONE else sending.longest_retry
    wait = Backoff(first=sending.first_retry, most=most, failures=failures).seconds(chance)
    wait = max(wait, _asked_for(error))
    rejected = failure is Failure.REJECTED
    return Retry(
        failure=failure,
        version=version,
        failures=failures,
        at=now + (sending.quarantine if rejected else wait),
        changed_at=now + (0.0 if rejected and failures == 1 else wait),
    )


def _asked_for(error: Exception) -> float:
    after = error.retry_after if isinstance(error, ApiError) else None
    return after or 0.0


class Retries:
    """Pods that failed, and when the next of them is due."""

    def __init__(self) -> None:
        self._known: dict[PodUID, Retry] = {}
        self._due: list[tuple[float, PodUID]] = []
        self._reminded: dict[PodUID, float] = {}

    def get(self, uid: PodUID) -> Retry | None:
        """What is known of a pod; None if all is well."""
        return self._known.get(uid)

    def put(self, uid: PodUID, retry: Retry) -> None:
        """Remember a failure."""
        self._known[uid] = retry
        self.remind(uid, retry.at)

    def remind(self, uid: PodUID, at: float) -> None:
        """Look at a pod at this moment, if nobody does before it."""
        known = self._reminded.get(uid)
        if known is None or at < known:
            self._reminded[uid] = at
            heapq.heappush(self._due, (at, uid))

    def forget(self, uid: PodUID) -> None:
        """All is well with a pod, or it is no more."""
        self._known.pop(uid, None)

    def release(self, failure: Failure) -> list[PodUID]:
        """Forget the pods that failed like this: what was wrong is over. They may go now."""
        over = [uid for uid, retry in self._known.items() if retry.failure is failure]
        for uid in over:
            del self._known[uid]
        return over

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
