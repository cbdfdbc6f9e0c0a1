"""Remove state without a desired pod: statuses, per-pod records, orphaned containers.

Upstream: HandlePodCleanups, pkg/kubelet/kubelet_pods.go v1.36.4.
"""

import logging
from collections.abc import Callable

from podstatus.base.failure_log import FailureLog
from podstatus.kube.objects.pod import PodUID
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers

logger = logging.getLogger(__name__)


class Housekeeping:
    """Periodic cleanup, active once all sources have delivered."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        workers: PodWorkers,
        syncer: PodSyncer,
        *,
        all_sources_ready: Callable[[], bool],
        heartbeat: Callable[[], None],
    ) -> None:
        self._pod_manager = dependencies.pod_manager
        self._registry = dependencies.registry
        self._statuses = dependencies.statuses
        self._pleg = dependencies.pleg
        self._clock = dependencies.clock
        self._period = dependencies.policy.housekeeping
        self._workers = workers
        self._syncer = syncer
        self._all_sources_ready = all_sources_ready
        self._heartbeat = heartbeat
        self._failure_log = FailureLog(logger, "housekeeping", expected=OSError)

    async def run(self) -> None:
        """Run a cleanup every `WorkerPolicy.housekeeping` seconds until cancelled."""
        while True:
            self._clean_safely()
            self._heartbeat()
            await self._clock.wait(self._period)

    def _clean_safely(self) -> None:
        """Clean once; an error such as a full disk is logged, and the next run retries."""
        try:
            self.clean_once()
        except Exception as error:  # noqa: BLE001 - logged once per kind: the log is on a disk, too
            self._failure_log.failed(error)
        else:
            self._failure_log.recovered()

    def clean_once(self) -> None:
        """Clean once. Does nothing until all sources have delivered and the PLEG has listed."""
        if not self._all_sources_ready() or not self._pleg.has_listed:
            return
        desired = {pod.uid for pod in self._pod_manager.pods()}
        self._terminate_orphans(desired)
        retained = desired | {lifecycle.uid for lifecycle in self._registry.all()}
        self._syncer.retain_only(retained)
        mirrors = {PodUID(mirror.uid) for mirror in self._pod_manager.mirror_pods()}
        self._statuses.remove_orphaned_statuses(desired | mirrors)

    def _terminate_orphans(self, desired: set[PodUID]) -> None:
        """Terminate runtime pods without a worker, and pods whose removal was missed."""
        for lifecycle in self._registry.all():
            if lifecycle.uid not in desired and not lifecycle.source_removed:
                self._workers.remove(lifecycle.uid)
        for uid, orphan in self._pleg.pods().items():
            if self._registry.get(uid) is None:
                logger.info(
                    "orphaned pod found in the runtime: pod=%s/%s uid=%s",
                    orphan.namespace,
                    orphan.name,
                    uid,
                )
                self._workers.terminate_orphan(orphan)
