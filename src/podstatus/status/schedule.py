"""Who may go now: one sync of a pod at a time, so many pods at once, failures kept apart."""

from podstatus.kube.pod import PodUID
from podstatus.status.circuit import Circuit
from podstatus.status.lanes import Lane, Lanes
from podstatus.status.policy import Sending
from podstatus.status.retries import Failure, Retries, Retry, next_retry


class Schedule:
    """The pods that are to be synced, under way, or kept waiting. Pure: it is told the time."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._lanes = Lanes()
        self._retries = Retries()
        self._circuit = Circuit(after=sending.circuit_after)
        self._flying: set[PodUID] = set()

    @property
    def flying(self) -> frozenset[PodUID]:
        """The pods that are under way."""
        return frozenset(self._flying)

    def retry(self, uid: PodUID) -> Retry | None:
        """What went wrong with a pod last time; None if nothing did."""
        return self._retries.get(uid)

    def want(self, uid: PodUID, version: int, lane: Lane, now: float) -> bool:
        """Have a pod synced, when its turn comes; False if it has to wait after a failure."""
        retry = self._retries.get(uid)
        if retry is not None and not retry.may_go(version, now):
            self._retries.remind(uid, retry.at if version == retry.version else retry.changed_at)
            return False
        self._lanes.put(uid, lane if self._sending.lanes else Lane.ORDINARY, now)
        return True

    def take(self, now: float) -> PodUID | None:
        """The next pod to sync, which counts as under way from now on; None if none may go.

        One that is under way already waits until it has landed: the schedule is told of it
        again then.
        """
        if len(self._flying) >= self._circuit.most_in_flight(now, self._sending.in_flight):
            return None
        while (uid := self._lanes.pop()) is not None:
            if uid not in self._flying:
                self._flying.add(uid)
                return uid
        return None

    def take_due(self, now: float) -> list[PodUID]:
        """The pods that have waited long enough after a failure."""
        return self._retries.take_due(now)

    def next_look(self) -> float | None:
        """When somebody may go who may not now; None if that takes another event."""
        moments = [] if (due := self._retries.next_due()) is None else [due]
        if self._circuit.is_open and len(self._lanes) and not self._flying:
            moments.append(self._circuit.closed_until)
        return min(moments, default=None)

    def landed(self, uid: PodUID) -> None:
        """A pod is under way no more, however that ended."""
        self._flying.discard(uid)

    def succeeded(self, uid: PodUID) -> list[PodUID]:
        """All is well with a pod; those that waited for the server alone may go now."""
        self._retries.forget(uid)
        return self._answered()

    def failed(
        self, uid: PodUID, version: int, error: Exception, *, now: float, chance: float
    ) -> tuple[Retry, list[PodUID]]:
        """Remember a failure; what becomes of the pod, and who may go now."""
        known = self._retries.get(uid)
        retry = next_retry(known, version, error, self._sending, now=now, chance=chance)
        self._retries.put(uid, retry)
        match retry.failure:
            case Failure.UNAVAILABLE:
                self._circuit = self._circuit.failed(now, chance)
            case Failure.BROKEN:
                pass  # says nothing about the server
            case _:
                return retry, self._answered()
        return retry, []

    def forget(self, uid: PodUID) -> None:
        """The pod is no more."""
        self._retries.forget(uid)
        self._lanes.discard(uid)

    def forgive(self) -> list[PodUID]:
        """Give those a last chance for whom trying again may help."""
        kinds = (Failure.UNAVAILABLE, Failure.BUSY, Failure.CONFLICT, Failure.BROKEN)
        return [uid for kind in kinds for uid in self._retries.release(kind)]

    def _answered(self) -> list[PodUID]:
        """The server is there."""
        was_open = self._circuit.is_open
        self._circuit = self._circuit.answered()
        return self._retries.release(Failure.UNAVAILABLE) if was_open else []
