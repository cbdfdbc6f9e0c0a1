"""Keep the board equal to what the directory and the status manager know of pods."""

import asyncio
import logging
import threading
from collections import OrderedDict
from contextlib import suppress

from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.pod import summarize_pod
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager

logger = logging.getLogger(__name__)


class SnapshotUpdater:
    """Puts pods up as they are now. It may be told from any thread which have changed.

    Who tells it waits for nothing; a pod that changes several times before its turn is put up
    once.
    """

    def __init__(
        self, cache: SnapshotCache, pod_manager: PodManager, status_manager: StatusManager
    ) -> None:
        self._cache = cache
        self._pod_manager = pod_manager
        self._status_manager = status_manager
        self._pending: OrderedDict[PodUID, None] = OrderedDict()
        self._wakeup = asyncio.Event()
        self._loop: tuple[asyncio.AbstractEventLoop, int] | None = None
        """The loop and the thread in which it runs."""

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """The pod has a new status."""
        self.pod_changed(pod.uid)

    def on_pod_removed(self, pod: Pod) -> None:
        """The pod has reached the end of its life; it is there until the directory forgets it."""
        self.pod_changed(pod.uid)

    def pod_changed(self, uid: PodUID) -> None:
        """Something is new of a pod, or of its mirror pod; or it is gone."""
        # Before the look at `_news`: who has been woken takes it along.
        self._pending[uid] = None
        if self._loop is None or self._wakeup.is_set():
            return
        loop, thread = self._loop
        if thread == threading.get_ident():
            # Crossing threads would cost whoever changes a status more than all else that is
            # done about it here.
            self._wakeup.set()
            return
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._wakeup.set)

    @property
    def is_idle(self) -> bool:
        """Whether all that has changed is up."""
        return not self._pending

    async def run(self) -> None:
        """Put up what changes, until cancelled."""
        self._loop = asyncio.get_running_loop(), threading.get_ident()
        while True:
            self._wakeup.clear()
            self.update_once()
            await self._wakeup.wait()

    def update_once(self) -> None:
        """Put up all that has changed."""
        while self._pending:
            uid, _ = self._pending.popitem(last=False)
            try:
                self._update(self._pod_manager.translate_pod_uid(uid))
            except Exception:
                logger.exception("pod cannot be put up: uid=%s", uid)

    def _update(self, uid: PodUID) -> None:
        pod = self._pod_manager.pod_by_uid(uid)
        if pod is None:
            self._cache.remove(uid)
            return
        status = self._status_manager.pod_status(uid)
        # Just after a start, what the API server shows is the newest there is.
        self._cache.put(
            summarize_pod(pod if status is None else structs.replace(pod, status=status))
        )
