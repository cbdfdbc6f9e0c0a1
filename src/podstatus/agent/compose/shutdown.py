"""Drain the node: for `podstatus drain`, and before the agent stops if the settings ask for it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from podstatus.agent.compose.drain_progress import describe_progress, describe_remaining
from podstatus.agent.compose.node import AgentNodeServices
from podstatus.agent.compose.pods import PodServices
from podstatus.agent.daemon.systemd import is_shutting_down
from podstatus.agent.settings.model import AUTO, DRAIN, AgentSettings
from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.pleg import Pleg
from podstatus.workers.admission.admit import AdmissionRejected
from podstatus.workers.shutdown.manager import ShutdownManager
from podstatus.workers.shutdown.plan import total_seconds

_POLL_SECONDS = 0.1
_REPORT_SECONDS = 1.0
"""For the Node to be shown as not Ready, if there was no pod to wait for."""


class NodeDrain:
    """Asked by the others from the start; there to be begun once it is wired."""

    def __init__(self) -> None:
        self._shutdown: ShutdownManager | None = None

    def build(
        self,
        settings: AgentSettings,
        pods: PodServices,
        node: AgentNodeServices,
        pleg: Pleg,
        clock: Clock,
    ) -> ShutdownManager:
        """With what it ends, and whom it tells."""
        self._shutdown = ShutdownManager(
            pods.pod_registry,
            pods.workers,
            pleg,
            settings.shutdown_periods,
            events=node.events,
            clock=clock,
            on_change=node.status.request_sync,
        )
        return self._shutdown

    def problem(self) -> str | None:
        """Why the node is not Ready, if it is because of this."""
        return None if self._shutdown is None else self._shutdown.problem()

    def rejection(self, pod: Pod) -> AdmissionRejected | None:
        """Why a new pod is not taken, if it is because of this."""
        return None if self._shutdown is None else self._shutdown.rejection_for(pod)


async def drain_node(
    shutdown: ShutdownManager, report: Callable[[str], None], is_reported: Callable[[], bool]
) -> tuple[str, ...]:
    """End all pods, and say what is waited for; those that have not ended in their time.

    `is_reported`: whether the Node says that it is not Ready. It is not waited for much longer.
    """
    shutdown.begin()
    told = ""
    async with asyncio.TaskGroup() as tasks:
        through = tasks.create_task(shutdown.wait_done())
        while not through.done():
            line = describe_progress(shutdown.progress())
            if line and line != told:
                report(line)
            told = line or told
            await asyncio.wait({through}, timeout=_POLL_SECONDS)
    with suppress(TimeoutError):
        async with asyncio.timeout(_REPORT_SECONDS):
            while not is_reported():  # noqa: ASYNC110 - of another service
                await asyncio.sleep(_POLL_SECONDS)
    return shutdown.progress().left


ReportProgress = Callable[[str], None]


@runtime_checkable
class Drainable(Protocol):
    """A node that can end its pods before it ends itself."""

    async def drain(self, report: ReportProgress) -> tuple[str, ...]:
        """End all pods, and say what is waited for; those that have not ended in their time."""


async def should_drain(settings: AgentSettings) -> bool:
    """Whether pods are to end before the agent does."""
    if settings.on_stop != AUTO:
        return settings.on_stop == DRAIN
    return total_seconds(settings.shutdown_periods) > 0 and await is_shutting_down()


async def drain_before_stop(
    node: Drainable, agent_task: "asyncio.Task[None]", report: ReportProgress
) -> bool:
    """End all pods, unless the whole agent ends before; whether they have ended."""
    draining = asyncio.ensure_future(node.drain(report))
    try:
        await asyncio.wait({agent_task, draining}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            return False
        if left := draining.result():
            report(f"time is over, {describe_remaining(left)}")
        return not left
    finally:
        draining.cancel()
