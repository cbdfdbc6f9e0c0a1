"""The latest probe results of all containers, and their effect.

Readiness and startup results go into the pod status, at once and with every later status. A failed
liveness or startup probe restarts its container.
"""

from collections.abc import Callable
from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState, PodFacts
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.pods.apply_probe_results import ProbeResults
from podstatus.runtime.port import ProbeResult
from podstatus.workers.actions.model import ContainerProbeVerdicts

_RESTART_REQUESTED = "unwanted"


class ProbeStatusSink(Protocol):
    """Receives probe results. Implemented by `podstatus.StatusManager`."""

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        """Set the result of a container's readiness probe."""

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        """Set the result of a container's startup probe."""


class ProbeResultStore:
    """Stores the result of each probe by container ID. Not thread-safe."""

    def __init__(
        self,
        statuses: ProbeStatusSink,
        on_failure: Callable[[PodUID], None],
        on_unhealthy: Callable[[ProbeResult], None],
        prober_start: Time = UNSET_TIME,
    ) -> None:
        """`prober_start` has the meaning it has in `ProbeResults`."""
        self._prober_start = prober_start
        self._statuses = statuses
        self._on_failure = on_failure
        self._on_unhealthy = on_unhealthy
        self._results: dict[PodUID, dict[tuple[str, str], bool]] = {}

    def record(self, result: ProbeResult) -> None:
        """Store a result. A change updates the status or wakes the pod worker."""
        results = self._results.setdefault(result.uid, {})
        key = result.probe, result.container_id
        if results.get(key) is result.success:
            return
        results[key] = result.success
        if not result.success:
            self._on_unhealthy(result)
        if result.probe == "readiness":
            self._statuses.set_container_readiness(
                result.uid, result.container_id, ready=result.success
            )
            return
        if result.probe == "startup" and result.success:
            self._statuses.set_container_startup(result.uid, result.container_id, started=True)
        self._on_failure(result.uid)

    def request_restart(self, uid: PodUID, container_id: str) -> None:
        """Stop a container as after a failed probe; its restart policy decides what follows."""
        self._results.setdefault(uid, {})[_RESTART_REQUESTED, container_id] = False
        self._on_failure(uid)

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of all containers; `old` is the previous status."""
        verdicts = ProbeResults(
            started=self._results_of(pod.uid, "startup"),
            ready=self._results_of(pod.uid, "readiness"),
            prober_start=self._prober_start,
        )
        return verdicts.apply_to(pod, status, old)

    def verdicts(self, uid: PodUID) -> ContainerProbeVerdicts:
        """Startup and liveness results, and the containers with a requested restart."""
        return ContainerProbeVerdicts(
            startup=self._results_of(uid, "startup"),
            liveness=self._results_of(uid, "liveness"),
            restart_requested=frozenset(self._results_of(uid, _RESTART_REQUESTED)),
        )

    def forget_exited(self, uid: PodUID, facts: PodFacts) -> None:
        """Drop the results of exited containers, to bound the memory of a crash-looping pod."""
        if not (results := self._results.get(uid)):
            return
        ended = {c.id for c in facts.containers if c.state is ContainerRunState.EXITED}
        for key in [key for key in results if key[1] in ended]:
            del results[key]

    def retain_only(self, uids: set[PodUID]) -> None:
        """Drop the results of all pods except these."""
        for uid in self._results.keys() - uids:
            del self._results[uid]

    def _results_of(self, uid: PodUID, probe: str) -> dict[str, bool]:
        results = self._results.get(uid, {})
        return {
            container: success for (kind, container), success in results.items() if kind == probe
        }
