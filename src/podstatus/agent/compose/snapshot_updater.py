"""Keep the board equal to what the directory and the status manager know of pods."""

import asyncio
import logging
import threading
from collections import OrderedDict
from contextlib import suppress

from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.snapshot_cache import Board
from podstatus.observe.summary.pod import summarize
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager

logger = logging.getLogger(__name__)


class PodPoster:
    """Puts pods up as they are now. It may be told from any thread which have changed.

    Who tells it waits for nothing; a pod that changes several times before its turn is put up
    once.
    """

    def __init__(self, board: Board, directory: PodManager, statuses: StatusManager) -> None:
        self._board = board
        self._directory = directory
        self._statuses = statuses
        self._changed: OrderedDict[PodUID, None] = OrderedDict()
        self._news = asyncio.Event()
        self._home: tuple[asyncio.AbstractEventLoop, int] | None = None
        """The loop and the thread in which it runs."""

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """The pod has a new status."""
        self.changed(pod.uid)

    def on_pod_removed(self, pod: Pod) -> None:
        """The pod has reached the end of its life; it is there until the directory forgets it."""
        self.changed(pod.uid)

    def changed(self, uid: PodUID) -> None:
        """Something is new of a pod, or of its mirror pod; or it is gone."""
        # Before the look at `_news`: who has been woken takes it along.
        self._changed[uid] = None
        if self._home is None or self._news.is_set():
            return
        loop, thread = self._home
        if thread == threading.get_ident():
            # Crossing threads would cost whoever changes a status more than all else that is
            # done about it here.
            self._news.set()
            return
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._news.set)

    @property
    def is_idle(self) -> bool:
        """Whether all that has changed is up."""
        return not self._changed

    async def run(self) -> None:
        """Put up what changes, until cancelled."""
        self._home = asyncio.get_running_loop(), threading.get_ident()
        while True:
            self._news.clear()
            self.post_once()
            await self._news.wait()

    def post_once(self) -> None:
        """Put up all that has changed."""
        while self._changed:
            uid, _ = self._changed.popitem(last=False)
            try:
                self._post(self._directory.translate_pod_uid(uid))
            except Exception:
                logger.exception("pod cannot be put up: uid=%s", uid)

    def _post(self, uid: PodUID) -> None:
        pod = self._directory.pod_by_uid(uid)
        if pod is None:
            self._board.remove(uid)
            return
        status = self._statuses.pod_status(uid)
        # Just after a start, what the API server shows is the newest there is.
        self._board.put(summarize(pod if status is None else structs.replace(pod, status=status)))
