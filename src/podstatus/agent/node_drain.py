"""Put together what ends the pods of a node: for `podstatus drain`, and when the agent ends."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from podstatus.agent.node_side import NodeSide
from podstatus.agent.pod_side import PodSide
from podstatus.agent.settings import AgentSettings
from podstatus.agent.show_drain import describe_progress
from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.relist import RuntimeView
from podstatus.workers.admission import Rejected
from podstatus.workers.shutdown import Shutdown

_LOOK_SECONDS = 0.1
_TELL_SECONDS = 1.0
"""For the Node to be shown as not Ready, if there was no pod to wait for."""


class NodeDrain:
    """Asked by the others from the start; there to be begun once it is wired."""

    def __init__(self) -> None:
        self._shutdown: Shutdown | None = None

    def wire(
        self,
        settings: AgentSettings,
        pods: PodSide,
        node: NodeSide,
        view: RuntimeView,
        clock: Clock,
    ) -> Shutdown:
        """With what it ends, and whom it tells."""
        self._shutdown = Shutdown(
            pods.lives,
            pods.workers,
            view,
            settings.shutdown_periods,
            events=node.events,
            clock=clock,
            on_change=node.status.now,
        )
        return self._shutdown

    def problem(self) -> str | None:
        """Why the node is not Ready, if it is because of this."""
        return None if self._shutdown is None else self._shutdown.problem()

    def not_taken(self, pod: Pod) -> Rejected | None:
        """Why a new pod is not taken, if it is because of this."""
        return None if self._shutdown is None else self._shutdown.not_taken(pod)


async def drain(
    shutdown: Shutdown, say: Callable[[str], None], is_told: Callable[[], bool]
) -> tuple[str, ...]:
    """End all pods, and say what is waited for; those that have not ended in their time.

    `is_told`: whether the Node says that it is not Ready. It is not waited for much longer.
    """
    shutdown.begin()
    told = ""
    async with asyncio.TaskGroup() as tasks:
        through = tasks.create_task(shutdown.through())
        while not through.done():
            line = describe_progress(shutdown.progress())
            if line and line != told:
                say(line)
            told = line or told
            await asyncio.wait({through}, timeout=_LOOK_SECONDS)
    with suppress(TimeoutError):
        async with asyncio.timeout(_TELL_SECONDS):
            while not is_told():  # noqa: ASYNC110 - of another service
                await asyncio.sleep(_LOOK_SECONDS)
    return shutdown.progress().left
