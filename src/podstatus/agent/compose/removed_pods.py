"""Record the end of pods that were removed while no agent was running.

Otherwise their history would have no end: the API server, or the folder of static pods, no longer
has them, so they get no status. The containers may have been terminated by `podstatus down`.
"""

from collections.abc import Callable

from podstatus.agent.compose.history import AgentHistory
from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.transitions.compare_statuses import FINISHED, Transition
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.workers.lifecycle.pod_registry import PodRegistry

_REASON = "RemovedDuringDowntime"
_MESSAGE = "the pod was removed while no agent was running"
_ORPHAN_MESSAGE = f"{_MESSAGE}; its containers were terminated afterwards"
_PERIOD_SECONDS = 1.0


class RemovedPods:
    """A status notifier, called before the history writer, and a service.

    Checks once all sources have delivered and the PLEG has listed: before the first status after
    that, so that the end precedes the entries of a new pod of the same name, and once a second
    until every pod has an end or a status.
    """

    def __init__(
        self,
        history: AgentHistory,
        pod_manager: PodManager,
        registry: PodRegistry,
        pleg: Pleg,
        *,
        all_sources_ready: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._history = history
        self._pod_manager = pod_manager
        self._registry = registry
        self._pleg = pleg
        self._all_sources_ready = all_sources_ready
        self._clock = clock
        self._unseen = {PodUID(pod.uid): pod for pod in history.unfinished_pods}
        self._orphans: set[PodUID] = set()
        """Removed pods whose containers are still to be terminated."""

    async def run(self) -> None:
        """Check until every pod has an end or a status."""
        while self._unseen:
            self.check_once()
            await self._clock.wait(_PERIOD_SECONDS)

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """Exclude a pod that has a status again; record the end of removed ones."""
        self._unseen.pop(pod.uid, None)
        self.check_once()

    def on_pod_removed(self, pod: Pod) -> None:
        """Exclude a pod whose end is recorded by the history writer."""
        self._unseen.pop(pod.uid, None)

    def check_once(self) -> None:
        """Record the end of each pod that no source and no runtime has."""
        downtime, writer = self._history.downtime, self._history.writer
        if downtime is None or writer is None or not self._unseen or not self._is_complete():
            return
        for uid, pod in tuple(self._unseen.items()):
            if self._pod_manager.pod_by_uid(uid) is not None:
                continue
            downtime.record(pod)
            if self._registry.get(uid) is not None or uid in self._pleg.pods():
                self._orphans.add(uid)
                continue
            del self._unseen[uid]
            if uid in self._orphans:
                writer.add_entry(pod, _end(_ORPHAN_MESSAGE))
            else:
                # Nothing of it was left when the agent started.
                writer.add_entry(pod, _end(_MESSAGE), at=downtime.started_at)

    def _is_complete(self) -> bool:
        return self._all_sources_ready() and self._pleg.has_listed


def _end(message: str) -> Transition:
    return Transition(kind=FINISHED, reason=_REASON, message=message)
