"""The statuses and resize conditions of all pods, under one lock; each method is atomic.

Upstream: updateStatusInternal, deletePodStatus and the parts of syncBatch and syncPod that hold
podStatusesLock, status_manager.go v1.36.4.
"""

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.encoding.frozen_copy import freeze
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.newer_status import newer_status
from podstatus.status.decide.resize import ResizeConditions
from podstatus.status.decide.terminate import terminate_status
from podstatus.status.decide.update import (
    UpdateAccepted,
    UpdateOutcome,
    UpdateRejected,
    UpdateUnchanged,
    decide_update,
)
from podstatus.status.decide.versioned_status import (
    UnsentUpdate,
    VersionedStatus,
    next_version,
)
from podstatus.status.notify import CallbackQueue, DeferredNotifier, DeferredObserver
from podstatus.status.ports import OutboxEntry, PodLookup, PodUpdateNotifier, StatusObserver
from podstatus.status.resize_conditions import ResizeStore

Result = TypeVar("Result")
StatusModifier = Callable[[Pod, PodStatus], PodStatus | None]


class StatusStore:
    """Decides on new statuses, stores them with their versions and notifies listeners.

    Thread-safe. The lock is held to decide and store, never across an await, a log line or a
    callback: notifiers and the observer are called after it is released, in the order of the
    decisions. `pods` is called with the lock held and must not block.
    """

    def __init__(
        self,
        pods: PodLookup,
        observer: StatusObserver | None,
        *,
        on_changed: Callable[[], None],
        clock: Clock,
        gates: FeatureGates,
    ) -> None:
        """`on_changed` is called after a status was stored, before the notifiers; it is quick.

        Without an observer, nothing is counted.
        """
        self._pods = pods
        self._on_changed = on_changed
        self._clock = clock
        self._gates = gates
        self._lock = threading.Lock()
        self._callbacks = CallbackQueue()
        self._notifiers: tuple[DeferredNotifier, ...] = ()
        self._observer = None if observer is None else DeferredObserver(observer, self._callbacks)
        self._resizes = ResizeStore(self._observer)
        self._entries: dict[PodUID, VersionedStatus] = {}
        self._changed: dict[PodUID, None] = {}
        """Pods with a new version that the sync has not seen, in the order of the updates."""
        self._observed: dict[PodUID, None] = {}
        """Pods of which the watch has delivered a newer copy that the sync has not seen."""
        self._forced: set[PodUID] = set()
        """Pods whose next status counts as changed, even if it is equal."""
        self._unchanged: dict[PodUID, tuple[Pod, PodStatus]] = {}
        """The arguments of each pod's last update, if the cached status equals it."""
        self._restored: dict[PodUID, PodStatus] = {}
        """Undelivered statuses from before a restart, of live pods without an entry."""

    # Decide and store

    def update(
        self, pod: Pod, status: PodStatus, *, force: bool
    ) -> tuple[UpdateOutcome, VersionedStatus | None]:
        """Decide on the status and store it if it is accepted; returns the current entry, too.

        The status gets the generation of `pod`.
        """
        uid, generation, arguments = pod.uid, pod.metadata.generation, (pod, status)
        if status.observed_generation != generation:
            status = structs.replace(status, observed_generation=generation)
        with self._lock:
            outcome = self._update(pod, status, force=force, finished=False)
            if isinstance(outcome, UpdateUnchanged) and not outcome.terminations:
                self._unchanged[uid] = arguments
            entry = self._entries.get(uid)
        self._deliver(outcome)
        return outcome, entry

    def find(self, pod: Pod, status: PodStatus) -> tuple[VersionedStatus | None, bool]:
        """Return the current entry, and whether the pod's last update was this one, without effect.

        If so, to update it once more has no effect either: all else that the decision depends on
        is constant, or part of the entry.
        """
        with self._lock:
            last = self._unchanged.get(pod.uid)
            is_repeated = last is not None and last[0] is pod and last[1] == status
            return self._entries.get(pod.uid), is_repeated

    def terminate(self, pod: Pod) -> UpdateOutcome:
        """Store the pod's final status; no further ones follow."""
        with self._lock:
            entry = self._entries.get(pod.uid)
            status = freeze(pod.status) if entry is None else entry.status
            outcome = self._update(pod, terminate_status(pod, status), force=True, finished=True)
        self._deliver(outcome)
        return outcome

    def modify(self, uid: PodUID, modifier: StatusModifier) -> tuple[Pod, UpdateOutcome] | None:
        """Modify the pod's cached status; None if the pod has none or `modifier` returns None."""
        with self._lock:
            pod, entry = self._pods.pod_by_uid(uid), self._entries.get(uid)
            status = None if pod is None or entry is None else modifier(pod, entry.status)
            if pod is None or status is None:
                return None
            outcome = self._update(pod, status, force=False, finished=False)
        self._deliver(outcome)
        return pod, outcome

    def _update(self, pod: Pod, status: PodStatus, *, force: bool, finished: bool) -> UpdateOutcome:
        uid, now = pod.uid, Time.from_unix_nanos(self._clock.now())
        cached = self._entries.get(uid)
        outcome = decide_update(
            pod,
            status,
            cached=None if cached is None else cached.status,
            last_known=self._last_known(pod) if cached is None else cached.status,
            force=force or uid in self._forced,
            now=now,
            gates=self._gates,
        )
        if isinstance(outcome, UpdateRejected):
            return outcome
        if self._observer is not None:
            for termination in outcome.terminations:
                self._observer.container_terminated(termination)
        if isinstance(outcome, UpdateAccepted):
            # A finished pod stays finished, but a static pod may come back with the same UID.
            is_finished = finished or (
                cached is not None and cached.finished and not is_static_pod(pod)
            )
            self._entries[uid] = next_version(
                cached,
                pod,
                outcome.status,
                finished=is_finished,
                monotonic=self._clock.monotonic(),
            )
            self._changed[uid] = None
            self._forced.discard(uid)
            self._unchanged.pop(uid, None)
            self._restored.pop(uid, None)
            added = cached is None and pod.metadata.deletion_timestamp is None
            for notifier in self._notifiers:
                notifier.stored(pod, outcome.status, is_added=added, is_finished=is_finished)
        return outcome

    def _deliver(self, outcome: UpdateOutcome) -> None:
        """Call what the outcome has queued; without an observer and notifiers, nothing is."""
        match outcome:
            case UpdateAccepted():
                self._on_changed()
                if self._observer is not None or self._notifiers:
                    self._callbacks.flush()
            case UpdateUnchanged(terminations) if terminations:
                self._callbacks.flush()

    def _last_known(self, pod: Pod) -> PodStatus:
        """Return the newer of the API server's and the restored status of an uncached pod."""
        mirror = self._pods.mirror_pod_by_pod(pod)
        observed = pod.status if mirror is None else mirror.status
        return newer_status(self._restored.get(pod.uid), observed)

    # Read

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """Return a snapshot of all cached statuses with their versions."""
        with self._lock:
            return dict(self._entries)

    def entry(self, uid: PodUID) -> VersionedStatus | None:
        """Return the pod's newest status, or None."""
        with self._lock:
            return self._entries.get(uid)

    def latest_status(self, pod: Pod) -> PodStatus:
        """Return the cached status, or the newer of the restored one and that of `pod`."""
        with self._lock:
            entry, restored = self._entries.get(pod.uid), self._restored.get(pod.uid)
        return newer_status(restored, pod.status) if entry is None else entry.status

    def uids(self) -> frozenset[PodUID]:
        """Return the UIDs of all cached and restored pods."""
        with self._lock:
            return frozenset(self._uids())

    def resizes(self) -> Mapping[PodUID, ResizeConditions]:
        """Return a snapshot of the resize conditions of all pods."""
        with self._lock:
            return self._resizes.all()

    def resize(self, uid: PodUID) -> ResizeConditions:
        """Return the pod's resize conditions, or `NO_RESIZE`."""
        with self._lock:
            return self._resizes.get(uid)

    # Notifiers and resize conditions

    def add_notifier(self, notifier: PodUpdateNotifier) -> None:
        """Call the notifier for every status that is stored from now on."""
        with self._lock:
            self._notifiers += (DeferredNotifier(notifier, self._callbacks),)

    def update_resizes(self, change: Callable[[ResizeStore, Time], Result]) -> Result:
        """Change resize conditions at the current time, and return the result of `change`."""
        with self._lock:
            result = change(self._resizes, self._now())
        self._callbacks.flush()
        return result

    # Remove and restore

    def remove(self, uid: PodUID) -> None:
        """Remove all state of a pod; its versions restart at 1."""
        with self._lock:
            self._remove(uid)
        self._callbacks.flush()

    def retain_only(self, uids: Container[str]) -> None:
        """Remove all pods except those with these UIDs."""
        with self._lock:
            for uid in [uid for uid in self._uids() if uid not in uids]:
                self._remove(uid)
        self._callbacks.flush()

    def seed(self, entries: Iterable[OutboxEntry]) -> None:
        """Restore undelivered statuses from before a restart, of pods without an entry.

        A final status becomes an entry. Another one is outdated by now and only used to decide on
        the pod's first status, and by `latest_status`.
        """
        with self._lock:
            for undelivered in entries:
                self._seed(undelivered)

    def _seed(self, undelivered: OutboxEntry) -> None:
        uid = undelivered.uid
        if uid in self._entries:
            return
        if not undelivered.finished:
            self._restored[uid] = undelivered.status
            return
        self._entries[uid] = VersionedStatus(
            version=1,
            namespace=undelivered.namespace,
            name=undelivered.name,
            finished=True,
            status=undelivered.status,
            unsent=(UnsentUpdate(1, self._clock.monotonic()),),
        )
        self._changed[uid] = None

    def _remove(self, uid: PodUID) -> None:
        self._entries.pop(uid, None)
        self._changed.pop(uid, None)
        self._forced.discard(uid)
        self._unchanged.pop(uid, None)
        self._restored.pop(uid, None)
        self._resizes.remove(uid)

    def _uids(self) -> Iterator[PodUID]:
        yield from self._entries
        yield from self._restored

    # For the sync, which a slow callback must not block

    def pop_changes(self) -> tuple[Mapping[PodUID, None], Mapping[PodUID, None]]:
        """Return the pods with a new version since the last call, and those that were observed.

        Each in the order of the events.
        """
        with self._lock:
            changed, self._changed = self._changed, {}
            observed, self._observed = self._observed, {}
        return changed, observed

    def mark_observed(self, uid: PodUID) -> None:
        """Record that the watch delivered a newer copy of the pod."""
        with self._lock:
            self._observed[uid] = None

    def force_next_update(self, uid: PodUID) -> None:
        """Treat the pod's next status as changed, even if it is equal."""
        with self._lock:
            if uid in self._entries:
                self._forced.add(uid)
                self._unchanged.pop(uid, None)

    def restamp(self, uid: PodUID, entry: VersionedStatus, status: PodStatus) -> None:
        """Replace the entry's status by one that differs in times only, if `entry` is current."""
        with self._lock:
            if self._entries.get(uid) is entry:
                self._entries[uid] = structs.replace(entry, status=status)

    def acknowledge(self, uid: PodUID, sent: VersionedStatus) -> VersionedStatus | None:
        """Mark the updates of `sent` as acknowledged by the API server; newer ones stay unsent.

        Returns the pod's newest status; None if the pod was removed.
        """
        with self._lock:
            cached = self._entries.get(uid)
            if cached is not None and sent.unsent:
                self._entries[uid] = cached.acknowledged(sent)
            observer = self._observer
            if observer and (seconds := sent.unsent_seconds(self._clock.monotonic())) is not None:
                observer.status_synced(uid, sent.namespace, sent.name, seconds)
        if observer:
            self._callbacks.flush(wait=False)
        return cached

    def count_failure(self, failure: str) -> None:
        """Report a failed sync to the observer."""
        if self._observer is not None:
            self._observer.sync_failed(failure)
            self._callbacks.flush(wait=False)

    def remove_deleted(self, uid: PodUID) -> None:
        """Remove all state of a pod that was deleted from the API server."""
        with self._lock:
            self._remove(uid)
        self._callbacks.flush(wait=False)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())
