"""Decide on a new status and store it.

Upstream: updateStatusInternal, status_manager.go v1.36.4.
"""

from collections.abc import Callable

from podstatus.base.clock import Clock
from podstatus.kube.encoding.frozen_copy import freeze
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.newer_status import newer_status
from podstatus.status.decide.terminate import terminate_status
from podstatus.status.decide.update import (
    UpdateAccepted,
    UpdateOutcome,
    UpdateRejected,
    decide_update,
)
from podstatus.status.notify import Notifiers
from podstatus.status.ports import PodLookup, StatusObserver
from podstatus.status.store import StatusCache

StatusModifier = Callable[[Pod, PodStatus], PodStatus | None]


class StatusUpdater:
    """Stores new statuses in the cache and queues their notifications.

    Not thread-safe: the owner holds the lock. `observer` and `notifiers` must only queue calls.
    """

    def __init__(
        self,
        cache: StatusCache,
        pods: PodLookup,
        *,
        observer: StatusObserver,
        notifiers: Notifiers,
        clock: Clock,
        gates: FeatureGates,
    ) -> None:
        self._cache = cache
        self._pods = pods
        self._observer = observer
        self._notifiers = notifiers
        self._clock = clock
        self._gates = gates

    def update(self, pod: Pod, status: PodStatus, *, force: bool, finished: bool) -> UpdateOutcome:
        """Decide on the status, and store it if it is accepted."""
        cached, now = self._cache.get(pod.uid), Time.from_unix_nanos(self._clock.now())
        outcome = decide_update(
            pod,
            status,
            cached=None if cached is None else cached.status,
            last_known=self._last_known(pod) if cached is None else cached.status,
            force=force or self._cache.is_update_forced(pod.uid),
            now=now,
            gates=self._gates,
        )
        if isinstance(outcome, UpdateRejected):
            return outcome
        for termination in outcome.terminations:
            self._observer.container_terminated(termination)
        if isinstance(outcome, UpdateAccepted):
            # A finished pod stays finished, but a static pod may come back with the same UID.
            is_finished = finished or (
                cached is not None and cached.finished and not is_static_pod(pod)
            )
            self._cache.put(pod, outcome.status, finished=is_finished, now=now)
            if is_finished:
                self._notifiers.removed(pod, outcome.status)
            else:
                added = cached is None and pod.metadata.deletion_timestamp is None
                self._notifiers.updated(pod, outcome.status, is_added=added)
        return outcome

    def terminate(self, pod: Pod) -> UpdateOutcome:
        """Store the pod's final status; no further ones follow."""
        entry = self._cache.get(pod.uid)
        status = freeze(pod.status) if entry is None else entry.status
        return self.update(pod, terminate_status(pod, status), force=True, finished=True)

    def modify(self, uid: PodUID, modifier: StatusModifier) -> tuple[Pod, UpdateOutcome] | None:
        """Modify the pod's cached status; None if the pod has none or `modifier` returns None."""
        pod, entry = self._pods.pod_by_uid(uid), self._cache.get(uid)
        status = None if pod is None or entry is None else modifier(pod, entry.status)
        if pod is None or status is None:
            return None
        return pod, self.update(pod, status, force=False, finished=False)

    def _last_known(self, pod: Pod) -> PodStatus:
        """Return the newer of the API server's and the restored status of an uncached pod."""
        mirror = self._pods.mirror_pod_by_pod(pod)
        observed = pod.status if mirror is None else mirror.status
        return newer_status(self._cache.restored(pod.uid), observed)
