"""Tells others what was decided, outside the lock and in the order it was decided."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.update import Termination
from podstatus.status.ports import (
    PodStartupLatencyStateHelper,
    PodUpdateNotifier,
    StatusObserver,
    SyncLatencyObserver,
)

logger = logging.getLogger(__name__)

Callback = Callable[[], None]


class CallbackQueue:
    """Calls to others, queued under the manager's lock and made after it is released.

    When `deliver` returns, everything that was queued before it has been told, in order. A
    thread waits for the one that is telling, so nobody runs ahead of slow listeners. A
    listener that calls the manager back queues more, which is told after its own turn; it
    must not wait for another thread that calls the manager.
    """

    def __init__(self) -> None:
        self._queue: deque[Callback] = deque()
        self._flush_lock = threading.Lock()
        self._flushing_thread: int | None = None

    def put(self, call: Callback) -> None:
        """Queue a call."""
        self._queue.append(call)

    def flush(self, *, wait: bool = True) -> None:
        """Make all queued calls, or wait until another thread has made them.

        With `wait=False` leave them to that thread, which looks once more when it is done:
        for the sync loop, which must not stand still because of somebody's slow listener.
        """
        # An interrupt may have left us named as the one who tells, but not the lock.
        if self._flushing_thread == threading.get_ident() and self._flush_lock.locked():
            return
        # A `with`, so that an interrupt at any point lets go of the lock. Who does not want to
        # wait may still do so for a moment, if the other thread was quicker.
        while wait or not self._flush_lock.locked():
            with self._flush_lock:
                self._drain()
            if not self._queue:
                return

    def _drain(self) -> None:
        self._flushing_thread = threading.get_ident()
        try:
            while self._queue:
                _call_safely(self._queue.popleft())
        finally:
            self._flushing_thread = None


def _call_safely(call: Callback) -> None:
    try:
        call()
    except Exception:
        # Somebody else's code: neither the caller nor the other listeners must suffer.
        told = call.func if isinstance(call, partial) else call
        name = getattr(told, "__qualname__", type(told).__name__)
        logger.exception("somebody who was told failed: call=%s", name)


class DeferredObserver:
    """Lets an observer know what was counted under the lock after it is released."""

    def __init__(self, observer: StatusObserver, callbacks: CallbackQueue) -> None:
        self._observer = observer
        self._latency_observer = observer if isinstance(observer, SyncLatencyObserver) else None
        self._callbacks = callbacks

    def container_terminated(self, termination: Termination) -> None:
        """Queue it."""
        self._callbacks.put(partial(self._observer.container_terminated, termination))

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        """Queue it."""
        self._callbacks.put(partial(self._observer.pending_resizes, by_reason))

    def resizes_in_progress(self, count: int) -> None:
        """Queue it."""
        self._callbacks.put(partial(self._observer.resizes_in_progress, count))

    def status_synced(self, duration_seconds: float) -> None:
        """Queue it."""
        self._callbacks.put(partial(self._observer.status_synced, duration_seconds))

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        """Queue it, if the observer wants to know."""
        if self._latency_observer is not None:
            self._callbacks.put(
                partial(self._latency_observer.pod_synced, uid, namespace, name, duration_seconds)
            )

    def sync_failed(self, failure: str) -> None:
        """Queue it."""
        self._callbacks.put(partial(self._observer.sync_failed, failure))


class SafeStartupLatency:
    """Tells a startup latency tracker; what goes wrong there is not the sync's failure."""

    def __init__(self, startup_latency: PodStartupLatencyStateHelper) -> None:
        self._startup_latency = startup_latency

    def record_status_updated(self, pod: Pod) -> None:
        """Tell it."""
        _call_safely(partial(self._startup_latency.record_status_updated, pod))

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        """Tell it."""
        _call_safely(partial(self._startup_latency.delete_pod_startup_state, uid))


class Notifiers:
    """Those who want to know of every status, and the queue they hear it through."""

    def __init__(self, callbacks: CallbackQueue) -> None:
        self._callbacks = callbacks
        self._notifiers: tuple[PodUpdateNotifier, ...] = ()

    def add(self, notifier: PodUpdateNotifier) -> None:
        """Tell this one too, from now on."""
        self._notifiers = (*self._notifiers, notifier)

    def updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        """Queue that the pod has a new status."""
        for notifier, seen in self._notifications(pod, status):
            self._callbacks.put(partial(notifier.on_pod_updated, seen, status, is_added=is_added))

    def removed(self, pod: Pod, status: PodStatus) -> None:
        """Queue that the pod has reached the end of its life, with this status."""
        for notifier, seen in self._notifications(pod, status):
            self._callbacks.put(partial(notifier.on_pod_removed, seen))

    def _notifications(self, pod: Pod, status: PodStatus) -> list[tuple[PodUpdateNotifier, Pod]]:
        if not self._notifiers:
            return []
        seen = structs.replace(pod, status=status)
        return [(notifier, seen) for notifier in self._notifiers]
