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
    """Priorities, as the maximum wait in seconds before a pod goes first in any lane."""

    URGENT = 0.0
    """A deletion or the first readiness: other controllers wait for these."""
    ORDINARY = 30.0
    RECONCILE = 60.0
    """No status changed: the API server's copy differs, or this is a retry after a failure."""


class PriorityQueue:
    """Waiting pods, each at most once."""

    def __init__(self) -> None:
        self._due: dict[PodUID, float] = {}
        self._heap: list[tuple[float, int, PodUID]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def put(self, uid: PodUID, priority: Priority, now: float) -> None:
        """Add a pod; a waiting pod moves forward if the new priority makes it due earlier."""
        due = now + priority.value
        queued = self._due.get(uid)
        if queued is not None and queued <= due:
            return
        self._due[uid] = due
        heapq.heappush(self._heap, (due, next(self._order), uid))

    def pop(self) -> PodUID | None:
        """Remove and return the next pod; None if the queue is empty."""
        while self._heap:
            due, _, uid = heapq.heappop(self._heap)
            if self._due.get(uid) == due:
                del self._due[uid]
                return uid
        return None

    def discard(self, uid: PodUID) -> None:
        """Remove a pod if it is waiting."""
        self._due.pop(uid, None)


_TRANSIENT_FAILURES = (
    Failure.UNAVAILABLE,
    Failure.BUSY,
    Failure.CONFLICT,
    Failure.DENIED,
    Failure.BROKEN,
)
"""Failures for which a retry may succeed although the status has not changed."""


class SyncQueue:
    """The pods that are queued, in flight, or backing off. Pure: callers pass the time.

    `now` is in monotonic seconds.
    """

    def __init__(self, options: ParallelSyncOptions) -> None:
        self._options = options
        self._waiting = PriorityQueue()
        self._retries = RetryTable()
        self._circuit = CircuitBreaker(failure_threshold=options.circuit_after)
        self._in_flight: set[PodUID] = set()
        self._probes: set[PodUID] = set()
        """Pods in flight that probe an unavailable server."""

    def retry(self, uid: PodUID) -> Retry | None:
        """Return the pod's retry state; None if its last sync succeeded."""
        return self._retries.get(uid)

    def add(self, uid: PodUID, version: int, priority: Priority, now: float) -> bool:
        """Queue a pod; False if it backs off after a failure.

        A pod in flight is not queued again; the caller re-adds it when the sync is done.
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
        """Return the next pod and mark it as in flight; None if no pod may be synced now."""
        if len(self._in_flight) >= self._circuit.max_in_flight(now, self._options.in_flight):
            return None
        uid = self._waiting.pop()
        if uid is not None:
            self._in_flight.add(uid)
            if self._circuit.is_open:
                self._probes.add(uid)
        return uid

    def pop_due(self, now: float) -> list[PodUID]:
        """Remove and return the pods whose back-off has passed."""
        return self._retries.pop_due(now)

    def next_wakeup(self, now: float) -> float | None:
        """Return when a further pod may be synced; None if that takes another event."""
        times = [] if (due := self._retries.next_due()) is None else [due]
        if self._circuit.is_open and len(self._waiting) and now < self._circuit.open_until:
            times.append(self._circuit.open_until)
        return min(times, default=None)

    def done(self, uid: PodUID) -> None:
        """Remove a pod from the in-flight set, whatever the outcome."""
        self._in_flight.discard(uid)
        self._probes.discard(uid)

    def clear_in_flight(self) -> frozenset[PodUID]:
        """Clear the in-flight set and return its members."""
        abandoned, self._in_flight, self._probes = frozenset(self._in_flight), set(), set()
        return abandoned

    def succeeded(self, uid: PodUID) -> list[PodUID]:
        """Record a success; return failed probes, which may be retried now."""
        self._retries.forget(uid)
        return self._server_responded()

    def is_probe(self, uid: PodUID) -> bool:
        """Whether a pod in flight is a probe of an unavailable server."""
        return uid in self._probes

    def server_responded(self, uid: PodUID) -> list[PodUID]:
        """Record a successful read: a later failure is specific to the pod.

        Returns failed probes, which may be retried now.
        """
        self._probes.discard(uid)
        return self._server_responded()

    def failed(
        self, uid: PodUID, attempt: SyncAttempt, error: Exception, *, now: float, jitter: float
    ) -> tuple[Retry, list[PodUID]]:
        """Record a failure; return the pod's retry state, and failed probes to retry now."""
        previous = self._retries.get(uid)
        retry = next_retry(previous, attempt, error, self._options, now=now, jitter=jitter)
        released: list[PodUID] = []
        match retry.failure:
            case Failure.UNAVAILABLE:
                retry = structs.replace(retry, probe=uid in self._probes)
                self._circuit = self._circuit.failed(uid, now, jitter)
            case Failure.BROKEN:
                pass  # not a response of the server
            case _:
                released = self._server_responded()
        self._retries.put(uid, retry)
        if retry.at > now:
            self._retries.schedule_wakeup(uid, retry.at)
        return retry, released

    def forget(self, uid: PodUID) -> None:
        """Remove a pod that was deleted or has another API object now."""
        self._retries.forget(uid)
        self._waiting.discard(uid)

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Remove the retry states of all pods except these."""
        self._retries.retain_only(uids)

    def retry_now(self, uid: PodUID) -> None:
        """End a pod's back-off; the next event syncs it."""
        self._retries.retry_now([uid])

    @property
    def in_flight(self) -> int:
        """Return the number of pods in flight."""
        return len(self._in_flight)

    @property
    def quarantined(self) -> int:
        """Return the number of pods whose status the server rejects."""
        return self._retries.count(Failure.REJECTED)

    @property
    def is_healthy(self) -> bool:
        """Whether the circuit is closed and no pod is in retry."""
        return not self._circuit.is_open and not len(self._retries)

    def is_blocked(self, uid: PodUID) -> bool:
        """Whether the pod cannot be sent now although it exists as far as known."""
        retry = self._retries.get(uid)
        return self._circuit.is_open if retry is None else retry.failure is not Failure.GONE

    @property
    def is_circuit_open(self) -> bool:
        """Whether the server counts as unavailable."""
        return self._circuit.is_open

    def allow_probe_now(self) -> bool:
        """Half-open the circuit now; return whether a pod is waiting to probe the server."""
        self._circuit = self._circuit.half_open()
        return len(self._waiting) > 0

    def retry_all_transient(self) -> list[PodUID]:
        """Half-open the circuit, and make all pods with transient failures due now; return them."""
        self.allow_probe_now()
        transient = self._retries.with_failure(_TRANSIENT_FAILURES)
        self._retries.retry_now(transient)
        return transient

    def _server_responded(self) -> list[PodUID]:
        """Close the circuit; return failed probes, which may be retried now."""
        was_open = self._circuit.is_open
        self._circuit = self._circuit.success()
        released = self._retries.probes() if was_open else []
        self._retries.retry_now(released)
        return released
