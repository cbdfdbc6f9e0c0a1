"""Terminate the pods of a node that shuts down or is drained, group by group, by priority.

While a shutdown is active, the node is not Ready and admits no pods. It is active until it is
cancelled or the agent exits; it is not persisted.

Upstream: managerImpl and podManager, pkg/kubelet/nodeshutdown v1.36.4.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from podstatus.events import reasons
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.workers.admission.admit import AdmissionRejected
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle.state_machine import Eviction, PodWorkerState
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.shutdown.plan import (
    ShutdownGroup,
    ShutdownPeriod,
    grace_in_group,
    group_by_priority,
)
from podstatus.workers.shutdown.progress import DRAINED, DRAINING, OFF, ShutdownProgress

logger = logging.getLogger(__name__)

SHUTDOWN_EVICTION = Eviction(
    reason="Terminated",
    message="Pod was terminated in response to imminent node shutdown.",
    is_disruption=True,
)
SHUTDOWN_REJECTION = AdmissionRejected(
    reason=reasons.NODE_SHUTDOWN, message="Pod was rejected as the node is shutting down."
)
NOT_READY_MESSAGE = "node is shutting down"

_SECOND = 1_000_000_000
_POLL_SECONDS = 0.1
_RESCAN_SECONDS = 1.0
"""Interval to look for running pods that a source delivered after the shutdown began."""


class ShutdownManager:
    """Terminates all pods once a shutdown begins.

    Not thread-safe: call from the event loop. Notification methods never block.
    """

    def __init__(
        self,
        dependencies: WorkerDependencies,
        workers: PodWorkers,
        periods: Sequence[ShutdownPeriod],
        *,
        record_event: Callable[[str, str], None],
        on_change: Callable[[], None],
    ) -> None:
        """`record_event` records a Normal event about the node, with a reason and a message.

        `on_change` is called when a shutdown begins or is cancelled, to update Ready.
        """
        self._registry = dependencies.registry
        self._pleg = dependencies.pleg
        self._clock = dependencies.clock
        self._workers = workers
        self._periods = periods
        self._record_event = record_event
        self._on_change = on_change
        self._active = asyncio.Event()
        self._done = asyncio.Event()
        self._group: ShutdownGroup | None = None
        self._start_count = 0
        """Number of shutdowns begun so far."""

    # Notifications

    def begin(self) -> None:
        """Start to terminate all pods and reject new ones; no effect if already active."""
        if self._active.is_set():
            return
        logger.info("node shutdown started: pods=%d", len(self._remaining()))
        self._active.set()
        self._start_count += 1
        self._record_event(reasons.NODE_SHUTDOWN, "Shutdown manager detected shutdown event")
        self._on_change()

    def cancel(self) -> None:
        """Admit pods again. Pods that are terminating continue to terminate."""
        if not self._active.is_set():
            return
        logger.info("node shutdown cancelled: pods=%d", len(self._remaining()))
        self._active.clear()
        self._done.clear()
        self._record_event(reasons.NODE_SHUTDOWN, "Shutdown manager detected shutdown cancellation")
        self._on_change()

    # Queries

    @property
    def is_active(self) -> bool:
        """Whether a shutdown is active: pods are terminated and rejected."""
        return self._active.is_set()

    def problem(self) -> str | None:
        """The message of the not-Ready condition; None if no shutdown is active."""
        return NOT_READY_MESSAGE if self.is_active else None

    def rejection_for(self, pod: Pod) -> AdmissionRejected | None:
        """The rejection of a new pod; None if no shutdown is active.

        A pod that the runtime runs already is not rejected; it is terminated with the others.
        """
        return SHUTDOWN_REJECTION if self.is_active and self._pleg.find(pod.uid) is None else None

    def progress(self) -> ShutdownProgress:
        """The progress of the shutdown, at this moment."""
        if not self.is_active:
            return self._inactive_progress()
        left = tuple(f"{pod.namespace}/{pod.name}" for pod in self._registry.active_pods())
        if not left:
            return ShutdownProgress(state=DRAINED)
        group = self._group
        if group is None:
            return ShutdownProgress(state=DRAINING, left=left)
        return ShutdownProgress(
            state=DRAINING,
            ending=len(group.pods),
            priority=group.priority,
            seconds=group.seconds,
            left=left,
        )

    def _inactive_progress(self) -> ShutdownProgress:
        lifecycles = self._registry.all()
        running = [
            lifecycle
            for lifecycle in lifecycles
            if lifecycle.pod is not None and lifecycle.state is PodWorkerState.SYNC
        ]
        return ShutdownProgress(
            state=OFF,
            ending=sum(lifecycle.state is PodWorkerState.TERMINATING for lifecycle in lifecycles),
            left=tuple(f"{lifecycle.namespace}/{lifecycle.name}" for lifecycle in running),
        )

    async def wait_done(self) -> None:
        """Return when every group has terminated or its time limit has passed."""
        await self._done.wait()

    # Loop

    async def run(self) -> None:
        """Wait for shutdowns and carry them out, until cancelled."""
        while True:
            await self._active.wait()
            start_count = self._start_count
            await self.drain_once()
            # Not done if it was cancelled and begun again meanwhile: new pods may have arrived.
            if self.is_active and start_count == self._start_count:
                self._done.set()
            await self._clock.wait(_RESCAN_SECONDS)

    async def drain_once(self) -> None:
        """Terminate all active pods, one group after the other."""
        try:
            for group in group_by_priority(self._periods, self._registry.active_pods()):
                if self.is_active:
                    self._group = group
                    await self._terminate_group(group)
        finally:
            self._group = None

    async def _terminate_group(self, group: ShutdownGroup) -> None:
        """Terminate a group and wait for it, at most for its time limit."""
        logger.info(
            "terminating pods: priority=%d pods=%d seconds=%d",
            group.priority,
            len(group.pods),
            group.seconds,
        )
        for pod in group.pods:
            self._workers.kill(pod.uid, SHUTDOWN_EVICTION, grace_in_group(group, pod))
        # A deadline, not a number of polls: on a busy machine each poll takes longer.
        deadline = self._clock.monotonic() + group.seconds * _SECOND
        uids = {pod.uid for pod in group.pods}
        while uids & self._remaining() and self._clock.monotonic() < deadline and self.is_active:
            await self._clock.wait(_POLL_SECONDS)
        if late := uids & self._remaining():
            logger.warning(
                "pods did not terminate in time: priority=%d pods=%d seconds=%d",
                group.priority,
                len(late),
                group.seconds,
            )

    def _remaining(self) -> set[PodUID]:
        running = (PodWorkerState.SYNC, PodWorkerState.TERMINATING)
        return {lifecycle.uid for lifecycle in self._registry.all() if lifecycle.state in running}
