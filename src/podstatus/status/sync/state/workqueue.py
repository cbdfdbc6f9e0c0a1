"""The workqueue of the parallel sync: one sync per pod at a time, a limit of pods in flight.

Each lane has a maximum wait, and a pod that exceeds it goes first in any lane: deletions overtake a
backlog, and the backlog never starves. Failed pods wait apart until their retry is due.
"""

import heapq
import itertools
from collections.abc import Collection
from enum import Enum

from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.circuit_breaker import CircuitBreaker
from podstatus.status.sync.state.retry import Failure, Retry, RetryTable, SyncAttempt, next_retry


class Priority(Enum):
    """How long a pod can wait, in seconds, before it stands in line with everybody else."""

    URGENT = 0.0
    """It is to be deleted, or has become ready for the first time: somebody waits for that."""
    ORDINARY = 30.0
    RECONCILE = 60.0
    """Nobody has reported anything: the API server shows something else than we think, or it is a
    further try after a failure."""


class PriorityQueue:
    """Pods that wait, each once."""

    def __init__(self) -> None:
        self._due: dict[PodUID, float] = {}
        self._heap: list[tuple[float, int, PodUID]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def put(self, uid: PodUID, priority: Priority, now: float) -> None:
        """Let a pod wait; one that waits already goes ahead, if this lane is the faster."""
        due = now + priority.value
        known = self._due.get(uid)
        if known is not None and known <= due:
            return
        self._due[uid] = due
        heapq.heappush(self._heap, (due, next(self._order), uid))

    def pop(self) -> PodUID | None:
        """The pod that goes next, which waits no more; None if nobody does."""
        while self._heap:
            due, _, uid = heapq.heappop(self._heap)
            if self._due.get(uid) == due:
                del self._due[uid]
                return uid
        return None

    def discard(self, uid: PodUID) -> None:
        """Let a pod wait no more."""
        self._due.pop(uid, None)


_TRANSIENT_FAILURES = (
    Failure.UNAVAILABLE,
    Failure.BUSY,
    Failure.CONFLICT,
    Failure.DENIED,
    Failure.BROKEN,
)
"""Failures after which trying once more may help, without anything having changed."""


class SyncQueue:
    """The pods that are to be synced, under way, or kept waiting. Pure: it is told the time."""

    def __init__(self, options: ParallelSyncOptions) -> None:
        self._options = options
        self._waiting = PriorityQueue()
        self._retries = RetryTable()
        self._circuit = CircuitBreaker(failure_threshold=options.circuit_after)
        self._in_flight: set[PodUID] = set()
        self._probes: set[PodUID] = set()
        """Those of them that were sent to see whether the server is there."""

    def retry(self, uid: PodUID) -> Retry | None:
        """What went wrong with a pod last time; None if nothing did."""
        return self._retries.get(uid)

    def add(self, uid: PodUID, version: int, priority: Priority, now: float) -> bool:
        """Have a pod synced, when its turn comes; False if it has to wait after a failure.

        Of one that is under way nothing is kept: who wants it asks again when it has landed.
        """
        if uid in self._in_flight:
            return True
        retry = self._retries.get(uid)
        if retry is not None and now < retry.due(version):
            self._retries.schedule_wakeup(uid, retry.due(version))
            return False
        self._waiting.put(uid, priority if self._options.prioritize else Priority.ORDINARY, now)
        return True

    def get(self, now: float) -> PodUID | None:
        """The next pod to sync, which counts as under way from now on; None if none may go."""
        if len(self._in_flight) >= self._circuit.max_in_flight(now, self._options.in_flight):
            return None
        uid = self._waiting.pop()
        if uid is not None:
            self._in_flight.add(uid)
            if self._circuit.is_open:
                self._probes.add(uid)
        return uid

    def pop_due(self, now: float) -> list[PodUID]:
        """The pods that have waited long enough after a failure."""
        return self._retries.pop_due(now)

    def next_wakeup(self, now: float) -> float | None:
        """When somebody may go who may not now; None if that takes another event."""
        moments = [] if (due := self._retries.next_due()) is None else [due]
        if self._circuit.is_open and len(self._waiting) and now < self._circuit.open_until:
            moments.append(self._circuit.open_until)
        return min(moments, default=None)

    def done(self, uid: PodUID) -> None:
        """A pod is under way no more, however that ended."""
        self._in_flight.discard(uid)
        self._probes.discard(uid)

    def clear_in_flight(self) -> frozenset[PodUID]:
        """Nobody is under way any more; those who were."""
        abandoned, self._in_flight, self._probes = frozenset(self._in_flight), set(), set()
        return abandoned

    def succeeded(self, uid: PodUID) -> list[PodUID]:
        """All is well with a pod; those that only found the server absent may go now."""
        self._retries.forget(uid)
        return self._server_responded()

    def is_probe(self, uid: PodUID) -> bool:
        """Whether a pod that is under way was sent to see whether the server is there."""
        return uid in self._probes

    def server_responded(self, uid: PodUID) -> list[PodUID]:
        """The server let a pod be read: if it fails now, that is the pod's matter."""
        self._probes.discard(uid)
        return self._server_responded()

    def failed(
        self, uid: PodUID, attempt: SyncAttempt, error: Exception, *, now: float, jitter: float
    ) -> tuple[Retry, list[PodUID]]:
        """Remember a failure; what becomes of the pod, and who may go now."""
        known = self._retries.get(uid)
        retry = next_retry(known, attempt, error, self._options, now=now, jitter=jitter)
        released: list[PodUID] = []
        match retry.failure:
            case Failure.UNAVAILABLE:
                retry = structs.replace(retry, probe=uid in self._probes)
                self._circuit = self._circuit.failed(uid, now, jitter)
            case Failure.BROKEN:
                pass  # says nothing about the server
            case _:
                released = self._server_responded()
        self._retries.put(uid, retry)
        if retry.at > now:
            self._retries.schedule_wakeup(uid, retry.at)
        return retry, released

    def forget(self, uid: PodUID) -> None:
        """The pod is no more, or its object is another one now."""
        self._retries.forget(uid)
        self._waiting.discard(uid)

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Forget the failures of all pods but these."""
        self._retries.retain_only(uids)

    def retry_now(self, uid: PodUID) -> None:
        """Let a pod wait no more for its time, only for an event."""
        self._retries.retry_now([uid])

    @property
    def in_flight(self) -> int:
        """How many pods are under way."""
        return len(self._in_flight)

    @property
    def quarantined(self) -> int:
        """How many pods have a status that the server rejects."""
        return self._retries.count(Failure.REJECTED)

    @property
    def is_healthy(self) -> bool:
        """Whether nobody waits because something failed."""
        return not self._circuit.is_open and not len(self._retries)

    def is_blocked(self, uid: PodUID) -> bool:
        """Whether a pod cannot be sent now, and is there as far as anybody knows."""
        retry = self._retries.get(uid)
        return self._circuit.is_open if retry is None else retry.failure is not Failure.GONE

    @property
    def is_circuit_open(self) -> bool:
        """Whether the server counts as not there."""
        return self._circuit.is_open

    def allow_probe_now(self) -> bool:
        """Let some look for the server now, though it is not their time; whether anybody can."""
        self._circuit = self._circuit.half_open()
        return len(self._waiting) > 0

    def retry_all_transient(self) -> list[PodUID]:
        """Give those a last chance now for whom trying again may help."""
        self.allow_probe_now()
        forgiven = self._retries.with_failure(_TRANSIENT_FAILURES)
        self._retries.retry_now(forgiven)
        return forgiven

    def _server_responded(self) -> list[PodUID]:
        """The server is there; those who may go now because of that."""
        was_open = self._circuit.is_open
        self._circuit = self._circuit.success()
        released = self._retries.probes() if was_open else []
        self._retries.retry_now(released)
        return released
