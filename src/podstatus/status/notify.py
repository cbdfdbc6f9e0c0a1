"""Deliver notifications outside the lock, in the order of the decisions."""

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
    """Callbacks that are queued under the manager's lock and run after it is released.

    When `flush` returns, all callbacks queued before it have run, in order. Other threads wait
    for the flushing thread, so no caller runs ahead of a slow callback. A callback may call the
    manager: the callbacks queued by that run after it returns. It must not wait for another
    thread that calls the manager.
    """

    def __init__(self) -> None:
        self._queue: deque[Callback] = deque()
        self._flush_lock = threading.Lock()
        self._flushing_thread: int | None = None

    def put(self, call: Callback) -> None:
        """Queue a call; `flush` runs it."""
        self._queue.append(call)

    def flush(self, *, wait: bool = True) -> None:
        """Run all queued callbacks, or wait until another thread has run them.

        With `wait=False`, leave them to a thread that is flushing, which checks the queue again
        when it is done. This is for the sync loop, which a slow callback must not block.
        """
        # After an interrupt, `_flushing_thread` may name this thread although the lock is free.
        if self._flushing_thread == threading.get_ident() and self._flush_lock.locked():
            return
        # A `with` block, so that an interrupt at any point releases the lock. With `wait=False`
        # this may still block briefly, if another thread takes the lock in between.
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
        # External code: its errors must affect neither the caller nor other callbacks.
        function = call.func if isinstance(call, partial) else call
        name = getattr(function, "__qualname__", type(function).__name__)
        logger.exception("status callback failed: call=%s", name)


class DeferredObserver:
    """Queues observer calls made under the lock until it is released."""

    def __init__(self, observer: StatusObserver, callbacks: CallbackQueue) -> None:
        self._observer = observer
        self._latency_observer = observer if isinstance(observer, SyncLatencyObserver) else None
        self._callbacks = callbacks

    def container_terminated(self, termination: Termination) -> None:
        self._callbacks.put(partial(self._observer.container_terminated, termination))

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        self._callbacks.put(partial(self._observer.pending_resizes, by_reason))

    def resizes_in_progress(self, count: int) -> None:
        self._callbacks.put(partial(self._observer.resizes_in_progress, count))

    def status_synced(
        self, uid: PodUID, namespace: str, name: str, duration_seconds: float
    ) -> None:
        """Queue the calls of the observer, with the pod if it is a `SyncLatencyObserver`."""
        self._callbacks.put(partial(self._observer.status_synced, duration_seconds))
        if self._latency_observer is not None:
            self._callbacks.put(
                partial(self._latency_observer.pod_synced, uid, namespace, name, duration_seconds)
            )

    def sync_failed(self, failure: str) -> None:
        self._callbacks.put(partial(self._observer.sync_failed, failure))


class SafeStartupLatency:
    """Forwards to a startup latency tracker and logs its errors, so they do not fail the sync."""

    def __init__(self, startup_latency: PodStartupLatencyStateHelper) -> None:
        self._startup_latency = startup_latency

    def record_status_updated(self, pod: Pod) -> None:
        _call_safely(partial(self._startup_latency.record_status_updated, pod))

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        _call_safely(partial(self._startup_latency.delete_pod_startup_state, uid))


class DeferredNotifier:
    """Queues notifications made under the lock until it is released."""

    def __init__(self, notifier: PodUpdateNotifier, callbacks: CallbackQueue) -> None:
        self._notifier = notifier
        self._callbacks = callbacks

    def stored(self, pod: Pod, status: PodStatus, *, is_added: bool, is_finished: bool) -> None:
        """Queue `on_pod_removed` with a final status, otherwise `on_pod_updated`."""
        current = structs.replace(pod, status=status)
        if is_finished:
            call = partial(self._notifier.on_pod_removed, current)
        else:
            call = partial(self._notifier.on_pod_updated, current, status, is_added=is_added)
        self._callbacks.put(call)
