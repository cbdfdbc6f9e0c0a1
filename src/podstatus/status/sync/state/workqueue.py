"""The workqueue of the parallel sync: one sync per pod at a time, a limit of pods in flight.

Each lane has a maximum wait, and a pod that exceeds it goes first in any lane: deletions overtake a
backlog, and the backlog never starves. Failed pods wait apart until their retry is due.
"""

import heapq
import itertools
from collections.abc import Callable, Collection, Mapping
from enum import Enum

from msgspec import structs

from podstatus.kube.objects.pod import ApiUID, PodUID
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.circuit_breaker import CircuitBreaker
from podstatus.status.sync.state.pod_sync_state import PodSyncState
from podstatus.status.sync.state.retry import TRANSIENT_FAILURES, Failure, Retry, next_retry


class Priority(Enum):
    """Priorities, as the maximum wait in seconds before a pod goes first in any lane."""

    URGENT = 0.0
    """A deletion or the first readiness: other controllers wait for these."""
    ORDINARY = 30.0
    RECONCILE = 60.0
    """No status changed: the API server's copy differs, or this is a retry after a failure."""


_NO_STATE = PodSyncState(api_uid=ApiUID(""))


class SyncQueue:
    """The sync states of all pods, and which pod is synced next. Pure: callers pass the time.

    `now` is in monotonic seconds. The heaps are indexes of the states; an item of a heap that does
    not match its state is ignored. A pod is forgotten by removing its state.
    """

    def __init__(self, options: ParallelSyncOptions) -> None:
        self._options = options
        self._circuit = CircuitBreaker(failure_threshold=options.circuit_after)
        self._states: dict[PodUID, PodSyncState] = {}
        self._waiting: list[tuple[float, int, PodUID]] = []
        self._wakeups: list[tuple[float, PodUID]] = []
        self._order = itertools.count()
        self._queued = self._in_flight = self._failed = 0

    # States

    def __len__(self) -> int:
        """Return the number of pods with a state."""
        return len(self._states)

    def state(self, uid: PodUID, api_uid: ApiUID) -> PodSyncState:
        """Return the pod's state; what is known of another API object is forgotten."""
        state = self._states.get(uid)
        if state is None:
            return PodSyncState(api_uid=api_uid)
        if state.api_uid != api_uid:
            state = state.for_object(api_uid)
            self.put(uid, state)
        return state

    def put(self, uid: PodUID, state: PodSyncState) -> None:
        """Replace the pod's state, and update the counts."""
        old = self._states.get(uid, _NO_STATE)
        self._states[uid] = state
        self._queued += (state.deadline is not None) - (old.deadline is not None)
        self._in_flight += state.in_flight - old.in_flight
        self._failed += (state.retry is not None) - (old.retry is not None)

    def update(self, uid: PodUID, transition: Callable[[PodSyncState], PodSyncState]) -> None:
        """Apply a transition to the pod's state, if it has one."""
        state = self._states.get(uid)
        if state is not None:
            self.put(uid, transition(state))

    def forget(self, uid: PodUID) -> None:
        """Remove a pod's state; of a pod in flight, all but what its response will settle."""
        state = self._states.get(uid)
        if state is None:
            return
        if state.in_flight:
            self.put(
                uid,
                structs.replace(
                    _NO_STATE,
                    api_uid=state.api_uid,
                    in_flight=True,
                    is_uncertain=state.is_uncertain,
                    may_land_late=state.may_land_late,
                ),
            )
        else:
            self.put(uid, _NO_STATE)
            del self._states[uid]

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Forget all pods except these."""
        for uid in [uid for uid in self._states if uid not in uids]:
            self.forget(uid)

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """Return a snapshot of the acknowledged versions by API UID. Thread-safe."""
        states = tuple(self._states.values())
        return {state.api_uid: state.sent_version for state in states if state.sent_version}

    # Queue

    def add(
        self, uid: PodUID, state: PodSyncState, version: int, priority: Priority, now: float
    ) -> bool:
        """Queue a pod; False if it backs off after a failure.

        A pod in flight is not queued again; the caller re-adds it when the sync is done. A queued
        pod moves forward if the new priority makes it due earlier.
        """
        if state.in_flight:
            return True
        if state.retry is not None and now < (due := state.retry.due(version)):
            self._schedule_wakeup(uid, state, due)
            return False
        deadline = now + (priority if self._options.prioritize else Priority.ORDINARY).value
        if state.deadline is None or deadline < state.deadline:
            self.put(uid, structs.replace(state, deadline=deadline))
            heapq.heappush(self._waiting, (deadline, next(self._order), uid))
        return True

    def get(self, now: float) -> PodUID | None:
        """Return the next pod and mark it as in flight; None if no pod may be synced now."""
        limit, is_probe = self._options.in_flight, self._circuit.is_open
        if is_probe:
            limit = self._circuit.max_in_flight(now, limit)
        if self._in_flight >= limit:
            return None
        while self._waiting:
            deadline, _, uid = heapq.heappop(self._waiting)
            state = self._states.get(uid)
            if state is not None and state.deadline == deadline:
                self.put(
                    uid, structs.replace(state, deadline=None, in_flight=True, is_probe=is_probe)
                )
                return uid
        return None

    def done(self, uid: PodUID) -> None:
        """End the sync of a pod in flight, whatever its outcome."""
        self.update(uid, _landed)

    def clear_in_flight(self) -> list[PodUID]:
        """End all syncs in flight and return their pods."""
        abandoned = [uid for uid, state in self._states.items() if state.in_flight]
        for uid in abandoned:
            self.done(uid)
        return abandoned

    def pop_due(self, now: float) -> list[PodUID]:
        """Remove and return the pods whose back-off has passed."""
        due = []
        while self._wakeups and self._wakeups[0][0] <= now:
            at, uid = heapq.heappop(self._wakeups)
            state = self._states.get(uid)
            if state is not None and state.wakeup == at:
                self.put(uid, structs.replace(state, wakeup=None))
                due.append(uid)
        return due

    def next_wakeup(self, now: float) -> float | None:
        """Return when a further pod may be synced; None if that takes another event."""
        times = [self._wakeups[0][0]] if self._wakeups else []
        if self._circuit.is_open and self._queued and now < self._circuit.open_until:
            times.append(self._circuit.open_until)
        return min(times, default=None)

    def _schedule_wakeup(self, uid: PodUID, state: PodSyncState, at: float) -> None:
        if state.wakeup is None or at < state.wakeup:
            self.put(uid, structs.replace(state, wakeup=at))
            heapq.heappush(self._wakeups, (at, uid))

    # Outcomes

    def succeeded(self, uid: PodUID) -> list[PodUID]:
        """Record a success; return failed probes, which may be retried now.

        A probe has only read its pod: a failure of its patch still counts.
        """
        self.update(uid, _on_success)
        return self._server_responded()

    def failed(
        self, uid: PodUID, version: int, error: Exception, *, now: float, jitter: float
    ) -> tuple[Retry, list[PodUID]]:
        """Record a failure; return the pod's retry state, and failed probes to retry now."""
        state = self._states[uid]
        retry = next_retry(state.retry, version, error, self._options, now=now, jitter=jitter)
        released: list[PodUID] = []
        match retry.failure:
            case Failure.UNAVAILABLE:
                retry = structs.replace(retry, probe=state.is_probe)
                self._circuit = self._circuit.failed(uid, now, jitter)
            case Failure.BROKEN:
                pass  # not a response of the server
            case _:
                released = self._server_responded()
        state = structs.replace(self._states[uid], retry=retry)
        self.put(uid, state)
        if retry.at > now:
            self._schedule_wakeup(uid, state, retry.at)
        return retry, released

    def retry_now(self, uid: PodUID) -> None:
        """End a pod's back-off; the next event syncs it."""
        self.update(uid, _retry_now)

    def retry_all_transient(self) -> list[PodUID]:
        """Half-open the circuit, and make all pods with transient failures due now; return them."""
        self.allow_probe_now()
        return self._release(lambda retry: retry.failure in TRANSIENT_FAILURES)

    def allow_probe_now(self) -> bool:
        """Half-open the circuit now; return whether a pod is waiting to probe the server."""
        self._circuit = self._circuit.half_open()
        return self._queued > 0

    def _server_responded(self) -> list[PodUID]:
        """Close the circuit; return failed probes, which may be retried now."""
        was_open = self._circuit.is_open
        self._circuit = self._circuit.success()
        return self._release(lambda retry: retry.probe) if was_open else []

    def _release(self, matches: Callable[[Retry], bool]) -> list[PodUID]:
        """Make the failed pods that match due now, and return them."""
        released = [
            uid
            for uid, state in self._states.items()
            if state.retry is not None and matches(state.retry)
        ]
        for uid in released:
            self.retry_now(uid)
        return released

    # Facts

    @property
    def in_flight(self) -> int:
        """Return the number of pods in flight. Thread-safe."""
        return self._in_flight

    @property
    def quarantined(self) -> int:
        """Return the number of pods whose status the server rejects. Thread-safe."""
        states = tuple(self._states.values())
        return sum(s.retry is not None and s.retry.failure is Failure.REJECTED for s in states)

    @property
    def is_healthy(self) -> bool:
        """Whether the circuit is closed and no pod is in retry."""
        return not self._failed and not self._circuit.is_open

    @property
    def is_circuit_open(self) -> bool:
        """Whether the server counts as unavailable."""
        return self._circuit.is_open

    def is_blocked(self, uid: PodUID) -> bool:
        """Whether the pod cannot be sent now although it exists as far as known."""
        state = self._states.get(uid)
        retry = None if state is None else state.retry
        return self._circuit.is_open if retry is None else retry.failure is not Failure.GONE


def _landed(state: PodSyncState) -> PodSyncState:
    return structs.replace(state, in_flight=False, is_probe=False)


def _on_success(state: PodSyncState) -> PodSyncState:
    return _retry_now(state) if state.is_probe else structs.replace(state, retry=None)


def _retry_now(state: PodSyncState) -> PodSyncState:
    return state if state.retry is None else structs.replace(state, retry=state.retry.immediate())
