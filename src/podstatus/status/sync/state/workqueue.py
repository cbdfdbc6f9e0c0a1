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
from podstatus.status.policy import Sending
from podstatus.status.sync.state.circuit_breaker import Circuit
from podstatus.status.sync.state.retry import Attempt, Failure, Retries, Retry, next_retry


class Lane(Enum):
    """How long a pod can wait, in seconds, before it stands in line with everybody else."""

    URGENT = 0.0
    """It is to be deleted, or has become ready for the first time: somebody waits for that."""
    ORDINARY = 30.0
    RECONCILE = 60.0
    """Nobody has reported anything: the API server shows something else than we think, or it is a
    further try after a failure."""


class Lanes:
    """Pods that wait, each once."""

    def __init__(self) -> None:
        self._due: dict[PodUID, float] = {}
        self._heap: list[tuple[float, int, PodUID]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def put(self, uid: PodUID, lane: Lane, now: float) -> None:
        """Let a pod wait; one that waits already goes ahead, if this lane is the faster."""
        due = now + lane.value
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


_MAY_PASS = (
    Failure.UNAVAILABLE,
    Failure.BUSY,
    Failure.CONFLICT,
    Failure.DENIED,
    Failure.BROKEN,
)
"""Failures after which trying once more may help, without anything having changed."""


class Schedule:
    """The pods that are to be synced, under way, or kept waiting. Pure: it is told the time."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._lanes = Lanes()
        self._retries = Retries()
        self._circuit = Circuit(after=sending.circuit_after)
        self._flying: set[PodUID] = set()
        self._probes: set[PodUID] = set()
        """Those of them that were sent to see whether the server is there."""

    def retry(self, uid: PodUID) -> Retry | None:
        """What went wrong with a pod last time; None if nothing did."""
        return self._retries.get(uid)

    def want(self, uid: PodUID, version: int, lane: Lane, now: float) -> bool:
        """Have a pod synced, when its turn comes; False if it has to wait after a failure.

        Of one that is under way nothing is kept: who wants it asks again when it has landed.
        """
        if uid in self._flying:
            return True
        retry = self._retries.get(uid)
        if retry is not None and now < retry.due(version):
            self._retries.remind(uid, retry.due(version))
            return False
        self._lanes.put(uid, lane if self._sending.lanes else Lane.ORDINARY, now)
        return True

    def take(self, now: float) -> PodUID | None:
        """The next pod to sync, which counts as under way from now on; None if none may go."""
        if len(self._flying) >= self._circuit.most_in_flight(now, self._sending.in_flight):
            return None
        uid = self._lanes.pop()
        if uid is not None:
            self._flying.add(uid)
            if self._circuit.is_open:
                self._probes.add(uid)
        return uid

    def take_due(self, now: float) -> list[PodUID]:
        """The pods that have waited long enough after a failure."""
        return self._retries.take_due(now)

    def next_look(self, now: float) -> float | None:
        """When somebody may go who may not now; None if that takes another event."""
        moments = [] if (due := self._retries.next_due()) is None else [due]
        if self._circuit.is_open and len(self._lanes) and now < self._circuit.closed_until:
            moments.append(self._circuit.closed_until)
        return min(moments, default=None)

    def landed(self, uid: PodUID) -> None:
        """A pod is under way no more, however that ended."""
        self._flying.discard(uid)
        self._probes.discard(uid)

    def abandon(self) -> frozenset[PodUID]:
        """Nobody is under way any more; those who were."""
        abandoned, self._flying, self._probes = frozenset(self._flying), set(), set()
        return abandoned

    def succeeded(self, uid: PodUID) -> list[PodUID]:
        """All is well with a pod; those that only found the server absent may go now."""
        self._retries.forget(uid)
        return self._answered()

    def is_probe(self, uid: PodUID) -> bool:
        """Whether a pod that is under way was sent to see whether the server is there."""
        return uid in self._probes

    def answered(self, uid: PodUID) -> list[PodUID]:
        """The server let a pod be read: if it fails now, that is the pod's matter."""
        self._probes.discard(uid)
        return self._answered()

    def failed(
        self, uid: PodUID, attempt: Attempt, error: Exception, *, now: float, chance: float
    ) -> tuple[Retry, list[PodUID]]:
        """Remember a failure; what becomes of the pod, and who may go now."""
        known = self._retries.get(uid)
        retry = next_retry(known, attempt, error, self._sending, now=now, chance=chance)
        released: list[PodUID] = []
        match retry.failure:
            case Failure.UNAVAILABLE:
                retry = structs.replace(retry, probe=uid in self._probes)
                self._circuit = self._circuit.failed(uid, now, chance)
            case Failure.BROKEN:
                pass  # says nothing about the server
            case _:
                released = self._answered()
        self._retries.put(uid, retry)
        if retry.at > now:
            self._retries.remind(uid, retry.at)
        return retry, released

    def forget(self, uid: PodUID) -> None:
        """The pod is no more, or its object is another one now."""
        self._retries.forget(uid)
        self._lanes.discard(uid)

    def keep(self, known: Collection[PodUID]) -> None:
        """Forget the failures of all pods but these."""
        self._retries.keep(known)

    def hasten(self, uid: PodUID) -> None:
        """Let a pod wait no more for its time, only for an event."""
        self._retries.hasten([uid])

    @property
    def in_flight(self) -> int:
        """How many pods are under way."""
        return len(self._flying)

    @property
    def quarantined(self) -> int:
        """How many pods have a status that the server rejects."""
        return self._retries.count(Failure.REJECTED)

    @property
    def is_at_ease(self) -> bool:
        """Whether nobody waits because something failed."""
        return not self._circuit.is_open and not len(self._retries)

    def has_to_wait(self, uid: PodUID) -> bool:
        """Whether a pod cannot be sent now, and is there as far as anybody knows."""
        retry = self._retries.get(uid)
        return self._circuit.is_open if retry is None else retry.failure is not Failure.GONE

    @property
    def finds_no_server(self) -> bool:
        """Whether the server counts as not there."""
        return self._circuit.is_open

    def try_server(self) -> bool:
        """Let some look for the server now, though it is not their time; whether anybody can."""
        self._circuit = self._circuit.forgiven()
        return len(self._lanes) > 0

    def forgive(self) -> list[PodUID]:
        """Give those a last chance now for whom trying again may help."""
        self.try_server()
        forgiven = self._retries.of(_MAY_PASS)
        self._retries.hasten(forgiven)
        return forgiven

    def _answered(self) -> list[PodUID]:
        """The server is there; those who may go now because of that."""
        was_open = self._circuit.is_open
        self._circuit = self._circuit.answered()
        released = self._retries.probes() if was_open else []
        self._retries.hasten(released)
        return released
