"""End the pods of a node that shuts down, or is to be empty: group by group, by priority.

While it is on, the node is not Ready and takes no pods. It stays on until somebody cancels it or
the agent ends: the next agent knows nothing of it.

Upstream: managerImpl and podManager, pkg/kubelet/nodeshutdown v1.36.4.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from podstatus.base.aio import boottime_ns
from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.pleg import Pleg
from podstatus.workers.admission.admit import AdmissionRejected
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.lifecycle.state_machine import Eviction, PodWorkerState
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.shutdown.plan import (
    ShutdownGroup,
    ShutdownPeriod,
    grace_in_group,
    group_by_priority,
)

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

OFF, DRAINING, DRAINED = "off", "draining", "drained"
_SECOND = 1_000_000_000
_POLL_SECONDS = 0.1
_RESCAN_SECONDS = 1.0
"""How often it is looked for pods that have come late, from before the shutdown."""


class NodeEventSink(Protocol):
    """Who is told what the node does."""

    def normal(self, reason: str, message: str) -> None:
        """Something that is meant to be."""


class ShutdownProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a shutdown is."""

    state: str
    """off, draining or drained."""
    ending: int = 0
    """How many pods are being ended together,"""
    priority: int = 0
    """of this priority and above it,"""
    seconds: int = 0
    """within so many seconds."""
    left: tuple[str, ...] = ()
    """The pods that have not ended yet, in all groups: namespace/name. Once it is off, those that
    nobody told to end; `ending` are the others then."""


class ShutdownManager:
    """Ends all pods once it is begun. For one event loop; what it is told never waits."""

    def __init__(
        self,
        registry: PodRegistry,
        workers: PodWorkers,
        pleg: Pleg,
        periods: Sequence[ShutdownPeriod],
        *,
        events: NodeEventSink,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
        monotonic: Callable[[], int] = boottime_ns,
    ) -> None:
        """`on_change` is told when it begins and when it is cancelled: the node's health.

        `monotonic`: nanoseconds of a clock that nobody sets.
        """
        self._registry = registry
        self._workers = workers
        self._pleg = pleg
        self._periods = periods
        self._events = events
        self._clock = clock
        self._monotonic = monotonic
        self._on_change = on_change
        self._active = asyncio.Event()
        self._done = asyncio.Event()
        self._group: ShutdownGroup | None = None
        self._start_count = 0
        """How often it was begun."""

    # What is told

    def begin(self) -> None:
        """End all pods, and take none; nothing changes if that is so already."""
        if self._active.is_set():
            return
        logger.info("node shuts down: pods=%d", len(self._remaining()))
        self._active.set()
        self._start_count += 1
        self._events.normal(reasons.NODE_SHUTDOWN, "Shutdown manager detected shutdown event")
        self._on_change()

    def cancel(self) -> None:
        """Take pods again. What was told to end goes on ending."""
        if not self._active.is_set():
            return
        logger.info("shutdown of the node is cancelled: pods=%d", len(self._remaining()))
        self._active.clear()
        self._done.clear()
        self._events.normal(
            reasons.NODE_SHUTDOWN, "Shutdown manager detected shutdown cancellation"
        )
        self._on_change()

    # What is asked

    @property
    def is_active(self) -> bool:
        """Whether pods are ended, and none is taken."""
        return self._active.is_set()

    def problem(self) -> str | None:
        """Why the node is not Ready, if it is because of this."""
        return NOT_READY_MESSAGE if self.is_active else None

    def rejection_for(self, pod: Pod) -> AdmissionRejected | None:
        """Why a new pod is not taken, if it is because of this.

        One that runs here already is not new, but heard of late: it is ended with the others.
        """
        return SHUTDOWN_REJECTION if self.is_active and self._pleg.find(pod.uid) is None else None

    def progress(self) -> ShutdownProgress:
        """How far it is."""
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
        lives = self._registry.all()
        stay = [
            life for life in lives if life.pod is not None and life.state is PodWorkerState.SYNC
        ]
        return ShutdownProgress(
            state=OFF,
            ending=sum(life.state is PodWorkerState.TERMINATING for life in lives),
            left=tuple(f"{life.namespace}/{life.name}" for life in stay),
        )

    async def wait_done(self) -> None:
        """Come back when every group has ended, or has had its time."""
        await self._done.wait()

    # The work

    async def run(self) -> None:
        """Wait until it is begun, and end pods then; until cancelled."""
        while True:
            await self._active.wait()
            times = self._start_count
            await self.drain_once()
            # One that was begun anew meanwhile has pods that were not looked at.
            if self.is_active and times == self._start_count:
                self._done.set()
            await self._clock.wait(_RESCAN_SECONDS)

    async def drain_once(self) -> None:
        """End all pods that there are, one group after the other."""
        try:
            for group in group_by_priority(self._periods, self._registry.active_pods()):
                if self.is_active:
                    self._group = group
                    await self._terminate_group(group)
        finally:
            self._group = None

    async def _terminate_group(self, group: ShutdownGroup) -> None:
        """Tell all of a group to end, and wait for them, as long as the group has."""
        logger.info(
            "ending pods: priority=%d pods=%d seconds=%d",
            group.priority,
            len(group.pods),
            group.seconds,
        )
        for pod in group.pods:
            self._workers.kill(pod.uid, SHUTDOWN_EVICTION, grace_in_group(group, pod))
        # Not so many looks: on a busy machine each of them takes longer than it should.
        until = self._monotonic() + group.seconds * _SECOND
        uids = {pod.uid for pod in group.pods}
        while uids & self._remaining() and self._monotonic() < until and self.is_active:
            await self._clock.wait(_POLL_SECONDS)
        if late := uids & self._remaining():
            logger.warning(
                "pods have not ended in time: priority=%d pods=%d seconds=%d",
                group.priority,
                len(late),
                group.seconds,
            )

    def _remaining(self) -> set[PodUID]:
        running = (PodWorkerState.SYNC, PodWorkerState.TERMINATING)
        return {life.uid for life in self._registry.all() if life.state in running}
