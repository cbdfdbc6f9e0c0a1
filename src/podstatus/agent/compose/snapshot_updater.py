"""Keep the snapshot cache equal to the pod manager and the status manager."""

import asyncio
import logging
import threading
from collections import OrderedDict
from contextlib import suppress

from msgspec import structs

from podstatus.agent.compose.held_back_phases import HeldBackPhases
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.pod import summarize_pod, summarize_terminating_pod
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager

logger = logging.getLogger(__name__)


class SnapshotUpdater:
    """Copies changed pods to the snapshot cache.

    Notification methods are thread-safe and never block. Changes are coalesced: a pod that
    changes several times before its turn is copied once.
    """

    def __init__(
        self,
        cache: SnapshotCache,
        pod_manager: PodManager,
        status_manager: StatusManager,
        held_back_phases: HeldBackPhases,
    ) -> None:
        self.cache = cache
        self._pod_manager = pod_manager
        self._status_manager = status_manager
        self._held_back_phases = held_back_phases
        self._pending: OrderedDict[PodUID, None] = OrderedDict()
        self._wakeup = asyncio.Event()
        self._loop: tuple[asyncio.AbstractEventLoop, int] | None = None
        """The event loop and its thread, while `run` is active."""

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        self.pod_changed(pod.uid)

    def on_pod_removed(self, pod: Pod) -> None:
        """Handle a removed status; the pod stays until the pod manager removes it."""
        self.pod_changed(pod.uid)

    def pod_changed(self, uid: PodUID) -> None:
        """Schedule an update of a pod; `uid` may be that of its mirror pod. Thread-safe."""
        # Before `_wakeup` is checked: a loop that is already awake then sees this entry.
        self._pending[uid] = None
        if self._loop is None or self._wakeup.is_set():
            return
        loop, thread = self._loop
        if thread == threading.get_ident():
            # call_soon_threadsafe writes to a pipe, which costs more than the update itself.
            self._wakeup.set()
            return
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._wakeup.set)

    @property
    def is_idle(self) -> bool:
        """True if no update is pending."""
        return not self._pending

    async def run(self) -> None:
        """Apply updates as they are scheduled, until cancelled."""
        self._loop = asyncio.get_running_loop(), threading.get_ident()
        while True:
            self._wakeup.clear()
            self.update_once()
            await self._wakeup.wait()

    def update_once(self) -> None:
        """Apply all pending updates; an error of one pod is logged."""
        while self._pending:
            uid, _ = self._pending.popitem(last=False)
            try:
                self._update(self._pod_manager.translate_pod_uid(uid))
            except Exception:
                logger.exception("cannot update the pod snapshot: uid=%s", uid)

    def _update(self, uid: PodUID) -> None:
        pod = self._pod_manager.pod_by_uid(uid)
        if pod is None:
            self.cache.remove(uid)
            return
        status = self._status_manager.pod_status(uid)
        # Just after a start, the status from the API server is the newest one.
        if status is not None:
            pod = structs.replace(pod, status=status)
        shown = self._held_back_phases.apply(pod)
        self.cache.put(
            summarize_pod(pod) if shown is pod else summarize_terminating_pod(shown, pod.status)
        )
