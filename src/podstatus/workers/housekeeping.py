"""Look for what nobody asks for any more: statuses, records, containers without a pod.

Upstream: HandlePodCleanups, pkg/kubelet/kubelet_pods.go v1.36.4.
"""

import logging
from collections.abc import Callable

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.kube.objects.pod import PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import RuntimeView
from podstatus.status.manager import StatusManager
from podstatus.workers.lifecycle.pod_registry import Lives
from podstatus.workers.pod_syncer import PodSteps
from podstatus.workers.pod_workers import PodWorkers

logger = logging.getLogger(__name__)


class Housekeeping:
    """Keeps house every now and then, once every source has said what it wants."""

    def __init__(
        self,
        directory: PodManager,
        lives: Lives,
        workers: PodWorkers,
        steps: PodSteps,
        statuses: StatusManager,
        view: RuntimeView,
        *,
        all_delivered: Callable[[], bool],
        clock: Clock,
        period: float = 2.0,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._directory = directory
        self._lives = lives
        self._workers = workers
        self._steps = steps
        self._statuses = statuses
        self._view = view
        self._all_delivered = all_delivered
        self._clock = clock
        self._period = period
        self._beat = beat
        self._trouble = FailureLog(logger, "housekeeping", expected=OSError)

    async def run(self) -> None:
        """Keep house until cancelled."""
        while True:
            self._try()
            self._beat()
            await self._clock.wait(self._period)

    def _try(self) -> None:
        """Look once; a disk that is full, say, ends nothing: what is left is found later."""
        try:
            self.clean_once()
        except Exception as error:  # noqa: BLE001 - told by its kind, once: the log is on a disk too
            self._trouble.failed(error)
        else:
            self._trouble.recovered()

    def clean_once(self) -> None:
        """Look once. Nothing happens before every source and the runtime have been heard."""
        if not self._all_delivered() or not self._view.has_listed:
            return
        desired = {pod.uid for pod in self._directory.pods()}
        self._end_orphans(desired)
        known = desired | {life.uid for life in self._lives.all()}
        self._steps.keep(known)
        mirrors = {PodUID(mirror.uid) for mirror in self._directory.mirror_pods()}
        self._statuses.remove_orphaned_statuses(desired | mirrors)

    def _end_orphans(self, desired: set[PodUID]) -> None:
        """End what has no worker; and pods that have left without anybody saying so."""
        for life in self._lives.all():
            if life.uid not in desired and not life.gone:
                self._workers.remove(life.uid)
        for uid, orphan in self._view.pods().items():
            if self._lives.get(uid) is None:
                logger.info(
                    "runtime has an orphan: pod=%s/%s uid=%s", orphan.namespace, orphan.name, uid
                )
                self._workers.end_orphan(orphan)
