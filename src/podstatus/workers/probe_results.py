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
from podstatus.workers.actions.model import Verdicts

_UNWANTED = "unwanted"


class Statuses(Protocol):
    """Who shows what probes found: `podstatus.StatusManager` does."""

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        """Take a readiness probe's verdict."""

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        """Take a startup probe's verdict."""


class ProbeBook:
    """Keeps the verdict of each probe by container ID. For one event loop."""

    def __init__(
        self,
        statuses: Statuses,
        on_failure: Callable[[PodUID], None],
        on_unhealthy: Callable[[ProbeResult], None] = lambda _: None,
        watching_since: Time = UNSET_TIME,
    ) -> None:
        """`watching_since` as in `ProbeResults`."""
        self._watching_since = watching_since
        self._statuses = statuses
        self._on_failure = on_failure
        self._on_unhealthy = on_unhealthy
        self._verdicts: dict[PodUID, dict[tuple[str, str], bool]] = {}

    def take(self, result: ProbeResult) -> None:
        """Take a result: show it, and have the pod looked at if something follows from it."""
        known = self._verdicts.setdefault(result.uid, {})
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

    def restart(self, uid: PodUID, container_id: str) -> None:
        """Have a running container ended as if a probe had failed: its policy says what is next."""
        self._verdicts.setdefault(uid, {})[_UNWANTED, container_id] = False
        self._on_failure(uid)

    def mark(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of its containers set; `old` was shown before."""
        verdicts = ProbeResults(
            started=self._of(pod.uid, "startup"),
            ready=self._of(pod.uid, "readiness"),
            prober_start=self._watching_since,
        )
        return verdicts.mark(pod, status, old)

    def verdicts(self, uid: PodUID) -> Verdicts:
        """What the probes of a pod say about starting and living, and who is to start anew."""
        return Verdicts(
            startup=self._of(uid, "startup"),
            liveness=self._of(uid, "liveness"),
            unwanted=frozenset(self._of(uid, _UNWANTED)),
        )

    def forget_ended(self, uid: PodUID, facts: PodFacts) -> None:
        """Forget what was said of containers that have ended: a pod may restart for years."""
        if not (known := self._verdicts.get(uid)):
            return
        ended = {c.id for c in facts.containers if c.state is ContainerRunState.EXITED}
        for key in [key for key in known if key[1] in ended]:
            del known[key]

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in self._verdicts.keys() - uids:
            del self._verdicts[uid]

    def _of(self, uid: PodUID, probe: str) -> dict[str, bool]:
        known = self._verdicts.get(uid, {})
        return {container: success for (kind, container), success in known.items() if kind == probe}
