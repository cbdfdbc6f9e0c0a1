"""Tells others about new statuses, outside the lock and in the order they were decided."""

import logging
import threading
from collections import deque

import msgspec
from msgspec import structs

from podstatus.kube.pod import Pod
from podstatus.kube.pod_status import PodStatus
from podstatus.status.ports import Notifier

logger = logging.getLogger(__name__)


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A status that was cached."""

    pod: Pod
    status: PodStatus
    is_added: bool
    finished: bool


class Notifications:
    """A queue of notifications and the ones who want them.

    Whoever finds nobody delivering delivers everything that is queued, so notifications
    keep their order without anyone waiting. A notifier that calls the manager back adds
    to the queue; it is not entered again.
    """

    def __init__(self) -> None:
        self._notifiers: tuple[Notifier, ...] = ()
        self._queue: deque[Notification] = deque()
        self._delivering = threading.Lock()

    def add_notifier(self, notifier: Notifier) -> None:
        """Tell this one too, from now on."""
        self._notifiers = (*self._notifiers, notifier)

    def put(self, notification: Notification) -> None:
        """Queue a notification; called in the order of the versions."""
        if self._notifiers:
            self._queue.append(notification)

    def deliver(self) -> None:
        """Deliver what is queued, unless somebody is at it already."""
        while self._queue and self._delivering.acquire(blocking=False):
            try:
                while self._queue:
                    self._tell(self._queue.popleft())
            finally:
                self._delivering.release()

    def _tell(self, notification: Notification) -> None:
        pod = structs.replace(notification.pod, status=notification.status)
        for notifier in self._notifiers:
            try:
                if notification.finished:
                    notifier.on_pod_removed(pod)
                else:
                    notifier.on_pod_updated(
                        pod, notification.status, is_added=notification.is_added
                    )
            except Exception:
                # Somebody else's code; the other notifiers and the caller must not suffer.
                logger.exception("notifier failed", extra={"uid": pod.uid})
