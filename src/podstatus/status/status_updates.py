"""Decide what becomes of a new status, and swap it in.

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
    """Puts new statuses into the cache and queues what there is to tell about them.

    Not locked: its owner is. Observer and notifiers must be such as queue.
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
        """Decide and swap."""
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
            # Once finished, always finished; but a static pod can come back as it was.
            over = finished or (cached is not None and cached.finished and not is_static_pod(pod))
            self._cache.put(pod, outcome.status, finished=over, now=now)
            if over:
                self._notifiers.removed(pod, outcome.status)
            else:
                added = cached is None and pod.metadata.deletion_timestamp is None
                self._notifiers.updated(pod, outcome.status, is_added=added)
        return outcome

    def terminate(self, pod: Pod) -> UpdateOutcome:
        """Close the books on a pod: nothing more will be reported."""
        entry = self._cache.get(pod.uid)
        known = freeze(pod.status) if entry is None else entry.status
        return self.update(pod, terminate_status(pod, known), force=True, finished=True)

    def modify(self, uid: PodUID, modifier: StatusModifier) -> tuple[Pod, UpdateOutcome] | None:
        """Change the cached status of a pod; None if there is none, or nothing to change."""
        pod, entry = self._pods.pod_by_uid(uid), self._cache.get(uid)
        status = None if pod is None or entry is None else modifier(pod, entry.status)
        if pod is None or status is None:
            return None
        return pod, self.update(pod, status, force=False, finished=False)

    def _last_known(self, pod: Pod) -> PodStatus:
        """What the API shows for a pod that has no cached status, or an earlier life knew."""
        mirror = self._pods.mirror_pod_by_pod(pod)
        shown = pod.status if mirror is None else mirror.status
        return newer_status(self._cache.restored(pod.uid), shown)
