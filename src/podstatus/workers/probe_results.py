"""The latest results of probes, and what follows from them.

Readiness and startup go into statuses, at once and with every status that is made later; a
liveness or startup probe that failed is a reason to restart its container.
"""

from collections.abc import Callable
from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState, PodFacts
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.pods.probe_results import ProbeResults
from podstatus.runtime.port import ProbeResult
from podstatus.workers.actions.model import ContainerProbeVerdicts

_RESTART_REQUESTED = "unwanted"


class ProbeStatusSink(Protocol):
    """Who shows what probes found: `podstatus.StatusManager` does."""

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        """Take a readiness probe's verdict."""

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        """Take a startup probe's verdict."""


class ProbeResultStore:
    """Keeps the verdict of each probe by container ID. For one event loop."""

    def __init__(
        self,
        statuses: ProbeStatusSink,
        on_failure: Callable[[PodUID], None],
        on_unhealthy: Callable[[ProbeResult], None] = lambda _: None,
        prober_start: Time = UNSET_TIME,
    ) -> None:
        """`prober_start` as in `ProbeResults`."""
        self._prober_start = prober_start
        self._statuses = statuses
        self._on_failure = on_failure
        self._on_unhealthy = on_unhealthy
        self._results: dict[PodUID, dict[tuple[str, str], bool]] = {}

    def record(self, result: ProbeResult) -> None:
        """Take a result: show it, and have the pod looked at if something follows from it."""
        known = self._results.setdefault(result.uid, {})
        key = result.probe, result.container_id
        if known.get(key) is result.success:
            return
        known[key] = result.success
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
        """Have a running container ended as if a probe had failed: its policy says what is next."""
        self._results.setdefault(uid, {})[_RESTART_REQUESTED, container_id] = False
        self._on_failure(uid)

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of its containers set; `old` was shown before."""
        verdicts = ProbeResults(
            started=self._results_of(pod.uid, "startup"),
            ready=self._results_of(pod.uid, "readiness"),
            prober_start=self._prober_start,
        )
        return verdicts.apply_to(pod, status, old)

    def verdicts(self, uid: PodUID) -> ContainerProbeVerdicts:
        """What the probes of a pod say about starting and living, and who is to start anew."""
        return ContainerProbeVerdicts(
            startup=self._results_of(uid, "startup"),
            liveness=self._results_of(uid, "liveness"),
            restart_requested=frozenset(self._results_of(uid, _RESTART_REQUESTED)),
        )

    def forget_exited(self, uid: PodUID, facts: PodFacts) -> None:
        """Forget what was said of containers that have ended: a pod may restart for years."""
        if not (known := self._results.get(uid)):
            return
        ended = {c.id for c in facts.containers if c.state is ContainerRunState.EXITED}
        for key in [key for key in known if key[1] in ended]:
            del known[key]

    def retain_only(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in self._results.keys() - uids:
            del self._results[uid]

    def _results_of(self, uid: PodUID, probe: str) -> dict[str, bool]:
        known = self._results.get(uid, {})
        return {container: success for (kind, container), success in known.items() if kind == probe}
