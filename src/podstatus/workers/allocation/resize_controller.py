"""Decide pending resizes: pods whose spec requests other resources than are allocated.

Retried when a pod changes, leaves or releases resources, and every 3 minutes.

Upstream: RetryPendingResizes, allocation/allocation_manager.go v1.36.4; HandlePodUpdates and
related handlers, kubelet.go.
"""

import asyncio
import logging
from collections.abc import Callable

from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.kube.conditions import POD_RESIZE_PENDING
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.resize import INFEASIBLE
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import RequestTotals
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle.state_machine import PodWorkerState
from podstatus.workers.resize.decision import (
    ResizeAccepted,
    ResizeDecision,
    ResizePending,
    ResizeRequest,
    resize_message,
    sort_pending_resizes,
)

logger = logging.getLogger(__name__)

RETRY_SECONDS = 180.0
_NOT_READY_SECONDS = 1.0
"""Poll interval in seconds while not every source has delivered."""

DecideResize = Callable[[Pod, Pod, RequestedResources], ResizeDecision]
"""Decides a resize: (pod as requested, pod as allocated, resources of other pods)."""


class ResizeController:
    """Queue of pods with a pending resize.

    Not thread-safe: call from the event loop. Notification methods never block.
    """

    def __init__(
        self,
        dependencies: WorkerDependencies,
        allocations: AllocationManager,
        request_totals: RequestTotals,
        *,
        decide: DecideResize,
        wake: Callable[[PodUID], None],
        all_sources_ready: Callable[[], bool],
        heartbeat: Callable[[], None],
    ) -> None:
        """`wake` is called with each pod whose status changed or whose resize was accepted."""
        self._registry = dependencies.registry
        self._statuses = dependencies.statuses
        self._recorder = dependencies.recorder
        self._clock = dependencies.clock
        self._allocations = allocations
        self._request_totals = request_totals
        self._decide = decide
        self._wake = wake
        self._all_sources_ready = all_sources_ready
        self._heartbeat = heartbeat
        self._queue: set[PodUID] = set()
        self._wakeup = asyncio.Event()

    # Notifications

    def enqueue(self, pod: Pod) -> None:
        """Queue the pod if its spec differs from its allocation; otherwise drop it."""
        if self._allocations.allocated(pod) is not pod:
            self._queue.add(pod.uid)
            self._wakeup.set()
        else:
            self._queue.discard(pod.uid)
            self._clear_pending(pod.uid)

    def retry(self) -> None:
        """Retry all pending resizes soon: resources may be free now."""
        if self._queue:
            self._wakeup.set()

    # Loop

    async def run(self) -> None:
        """Decide pending resizes until cancelled."""
        while True:
            self._wakeup.clear()
            self._heartbeat()
            delay = await self.reconcile_once()
            await wait_event_or_timeout(self._wakeup, self._clock, delay)

    async def reconcile_once(self) -> float:
        """Decide all pending resizes. Return the seconds until the next retry.

        Decides nothing until all sources have delivered: the pods of the node are unknown until
        then.
        """
        if not self._all_sources_ready():
            return _NOT_READY_SECONDS
        for uid in sort_pending_resizes(self._pending_requests()):
            pod = self._syncing_pod(uid)
            if pod is not None:
                await self._reconcile_safely(pod)
        return RETRY_SECONDS

    def _pending_requests(self) -> list[ResizeRequest]:
        pods = {uid: self._syncing_pod(uid) for uid in self._queue}
        self._queue = {uid for uid, pod in pods.items() if pod is not None}
        return [
            ResizeRequest(
                pod=pod, allocated=self._allocations.allocated(pod), since=self._pending_since(uid)
            )
            for uid, pod in pods.items()
            if pod is not None
        ]

    def _syncing_pod(self, uid: PodUID) -> Pod | None:
        lifecycle = self._registry.get(uid)
        return (
            lifecycle.pod
            if lifecycle is not None and lifecycle.state is PodWorkerState.SYNC
            else None
        )

    def _pending_since(self, uid: PodUID) -> Time | None:
        for condition in self._statuses.pod_resize_conditions(uid):
            if condition.type == POD_RESIZE_PENDING:
                return condition.last_transition_time
        return None

    async def _reconcile_safely(self, pod: Pod) -> None:
        """Decide one resize; an error such as a full disk is logged, and the pod is retried."""
        self._queue.discard(pod.uid)
        try:
            await self._reconcile(pod)
        except Exception:
            logger.exception(
                "cannot decide on a pod resize, will retry: pod=%s/%s uid=%s",
                *pod.full_name,
                pod.uid,
            )
            self._queue.add(pod.uid)

    async def _reconcile(self, pod: Pod) -> None:
        allocated = self._allocations.allocated(pod)
        if allocated is pod:
            self._clear_pending(pod.uid)
            return
        match self._decide(pod, allocated, self._request_totals.excluding(pod.uid)):
            case ResizeAccepted():
                await self._allocations.allocate(pod)
                self._set_accepted(pod)
            case ResizePending() as pending:
                self._set_pending(pod, pending)

    def _set_accepted(self, pod: Pod) -> None:
        generation = pod.metadata.generation
        logger.info("pod resize accepted: pod=%s/%s generation=%d", *pod.full_name, generation)
        self._statuses.clear_pod_resize_pending_condition(pod.uid)
        # Clear first: the condition may hold the error and the generation of an earlier resize.
        self._statuses.clear_pod_resize_in_progress_condition(pod.uid)
        self._statuses.set_pod_resize_in_progress_condition(pod.uid, "", "", generation)
        message = resize_message("Pod resize started", pod, generation)
        self._recorder.normal(pod_reference(pod), reasons.RESIZE_STARTED, message)
        self._wake(pod.uid)

    def _set_pending(self, pod: Pod, pending: ResizePending) -> None:
        generation, before = pod.metadata.generation, self._condition_messages(pod.uid)
        is_infeasible = pending.reason == INFEASIBLE
        if not is_infeasible:
            self._queue.add(pod.uid)
        changed = self._statuses.set_pod_resize_pending_condition(
            pod.uid, pending.reason, pending.message, generation
        )
        if changed:
            logger.info(
                "pod resize pending: pod=%s/%s reason=%s message=%s",
                *pod.full_name,
                pending.reason,
                pending.message,
            )
            reason = reasons.RESIZE_INFEASIBLE if is_infeasible else reasons.RESIZE_DEFERRED
            message = resize_message(
                f"Pod resize {pending.reason}", pod, generation, pending.message
            )
            self._recorder.warn(pod_reference(pod), reason, message)
        if changed or self._condition_messages(pod.uid) != before:
            self._wake(pod.uid)

    def _condition_messages(self, uid: PodUID) -> list[str]:
        return [condition.message for condition in self._statuses.pod_resize_conditions(uid)]

    def _clear_pending(self, uid: PodUID) -> None:
        """Clear the pending condition: the resize was withdrawn."""
        if self._pending_since(uid) is not None:
            self._statuses.clear_pod_resize_pending_condition(uid)
            self._wake(uid)
