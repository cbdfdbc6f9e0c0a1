"""Measure how long pods take to start.

Upstream: basicPodStartupLatencyTracker, pod_startup_latency_tracker.go v1.36.4.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.kube.encoding.frozen_copy import require_type
from podstatus.kube.objects.pod import Pod, PodUID, is_mirror_pod, is_static_pod, is_terminal_phase
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.startup_measurement import (
    DONE,
    PodStartup,
    StartupState,
    has_pod_started,
    is_pod_unschedulable,
    measure_startup,
)
from podstatus.status.notify import CallbackQueue
from podstatus.status.ports import StartupObserver, check_port

logger = logging.getLogger(__name__)

MAX_PODS = 10_000
"""Tracked pods; far more than a node runs. Force-deleted pods are never removed explicitly, so the
oldest entries are evicted."""


class StartupLatencyTracker:
    """Tracks each pod from its first observation until it is observed started; measures it once.

    Pass it to the manager as `startup_latency`, pass it every pod that the watch delivers, and
    report image pulls and init containers. A pod has started when the API server has accepted a
    status with all containers running and the watch shows it. Pods that had started before they
    were first observed, pods that could not be scheduled immediately, and static pods are not
    measured.

    All methods are thread-safe. `observer` is called outside the lock; `clock` defaults to the
    system clock. All times, including those passed in calls, are wall-clock times.
    """

    def __init__(
        self, observer: StartupObserver, *, clock: Clock | None = None, max_pods: int = MAX_PODS
    ) -> None:
        check_port(observer, StartupObserver, "observer")
        if max_pods < 1:
            raise ValueError(f"max_pods is {max_pods!r}; must be at least 1")
        self._observer = observer
        self._clock = clock or SystemClock()
        self._max_pods = max_pods
        self._lock = threading.Lock()
        self._callbacks = CallbackQueue()
        self._pods: dict[PodUID, StartupState] = {}
        self._has_network_pod = False

    def __len__(self) -> int:
        """Return the number of tracked pods."""
        return len(self._pods)

    def state(self, uid: str) -> StartupState | None:
        """Return what is known of the start of a pod; None if it is not tracked."""
        return self._pods.get(PodUID(uid))

    def observed_pod_on_watch(self, pod: Pod, when: Time) -> None:
        """Record a pod that the watch delivered at the time `when`."""
        require_type(pod, Pod)
        _check_time(when)
        with self._lock:
            startup = self._observe(pod, when)
        self._report(pod, startup)

    def record_image_started_pulling(self, uid: str) -> None:
        """Record that an image pull for this pod starts now."""
        self._modify(
            uid, lambda state: structs.replace(state, pulls=state.pulls.started(self._now()))
        )

    def record_image_finished_pulling(self, uid: str) -> None:
        """Record that an image pull for this pod ends now.

        Report failed pulls too: otherwise the next end is matched with the failed pull's start.
        """
        self._modify(
            uid, lambda state: structs.replace(state, pulls=state.pulls.finished(self._now()))
        )

    def record_init_container_started(self, uid: str, started_at: Time) -> None:
        """Record the start of an init container; do not report sidecars."""
        _check_time(started_at)
        self._modify(
            uid,
            lambda state: structs.replace(
                state, init_containers=state.init_containers.started(started_at)
            ),
        )

    def record_init_container_finished(self, uid: str, finished_at: Time) -> None:
        """Record the end of an init container; the same end may be reported repeatedly."""
        _check_time(finished_at)
        self._modify(
            uid,
            lambda state: structs.replace(
                state, init_containers=state.init_containers.reported_finished(finished_at)
            ),
        )

    def record_status_updated(self, pod: Pod) -> None:
        """Record a pod returned by the API server after a status patch."""
        startup = None
        if has_pod_started(pod):
            with self._lock:
                state = self._pods.get(pod.uid, DONE)
                if not state.is_done:
                    startup = self._complete(pod, structs.replace(state, is_reported=True))
        self._report(pod, startup)

    def delete_pod_startup_state(self, uid: str) -> None:
        """Remove the state of a deleted pod."""
        with self._lock:
            self._pods.pop(PodUID(uid), None)

    def _observe(self, pod: Pod, when: Time) -> PodStartup | None:
        """Return the measurement if the startup is complete. Called with the lock held."""
        state = self._pods.get(pod.uid)
        if is_terminal_phase(pod.status.phase):
            self._pods.pop(pod.uid, None)
        elif state is None and (pod.status.start_time or is_static_pod(pod) or is_mirror_pod(pod)):
            return None
        elif is_pod_unschedulable(pod):
            self._store(pod.uid, DONE)
        elif state is None:
            self._store(pod.uid, StartupState())
        elif not state.is_done and state.seen_at is None and has_pod_started(pod):
            return self._complete(pod, structs.replace(state, seen_at=when))
        return None

    def _complete(self, pod: Pod, state: StartupState) -> PodStartup | None:
        """Measure a startup once it was both acknowledged and observed, in either order."""
        seen_at = state.seen_at
        if not state.is_reported or seen_at is None or not pod.metadata.creation_timestamp:
            self._store(pod.uid, state)
            return None
        startup = measure_startup(pod, state, seen_at)
        needs_network = startup.sli_seconds is not None and not pod.spec.host_network
        if needs_network and not self._has_network_pod:
            self._has_network_pod = True
            startup = structs.replace(startup, is_first_network_pod=True)
        self._store(pod.uid, DONE)
        self._callbacks.put(partial(self._observer.pod_started, startup))
        return startup

    def _report(self, pod: Pod, startup: PodStartup | None) -> None:
        """Log the measurement and call the observer. Called without the lock."""
        if startup is None:
            return
        logger.info(
            "pod started: pod=%s/%s uid=%s total_seconds=%.3f image_pull_seconds=%.3f "
            "init_seconds=%.3f",
            *pod.full_name,
            pod.uid,
            startup.total_seconds,
            startup.image_pulling_seconds,
            startup.init_containers_seconds,
        )
        self._callbacks.flush()

    def _store(self, uid: PodUID, startup: StartupState) -> None:
        if uid not in self._pods and len(self._pods) >= self._max_pods:
            del self._pods[next(iter(self._pods))]
        self._pods[uid] = startup

    def _modify(self, uid: str, change: Callable[[StartupState], StartupState]) -> None:
        with self._lock:
            state = self._pods.get(PodUID(uid))
            if state is not None and not state.is_done:
                self._pods[PodUID(uid)] = change(state)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _check_time(value: Time) -> None:
    if not isinstance(value, Time):
        raise TypeError(
            f"expected a Time, got {type(value).__name__}; "
            "for the current time, pass Time.from_unix_nanos(time.time_ns())"
        )
