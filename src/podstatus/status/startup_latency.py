"""Measures how long pods take to start.

Upstream: basicPodStartupLatencyTracker, pod_startup_latency_tracker.go v1.36.4.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial

from msgspec import structs

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock
from podstatus.kube.encoding.frozen_copy import require_type
from podstatus.kube.objects.pod import Pod, PodUID, is_mirror_pod, is_static_pod, is_terminal_phase
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.pod_startup import (
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
"""Far more than a node runs. Nobody says goodbye to a pod that was deleted by force, so what is
known of the oldest pods makes room."""


class StartupLatencyTracker:
    """Follows each pod from the first sight of it until it is seen started, and measures once.

    Give it to the manager as `startup_latency`, show it every pod that your watch delivers, and
    tell it of pulls and init containers. A pod counts as started when the API server has
    accepted a status that says so and the watch shows it. Not measured are pods that had begun
    before they were first seen, pods that could not be scheduled at once, and static pods.

    All methods may be called from any thread. `observer` is told outside the lock; `clock` is
    the machine's unless given. All times are wall-clock times, those in calls too.
    """

    def __init__(
        self, observer: StartupObserver, *, clock: Clock | None = None, max_pods: int = MAX_PODS
    ) -> None:
        check_port(observer, StartupObserver, "observer")
        if max_pods < 1:
            raise ValueError(f"most_pods is {max_pods!r}; a number of pods from 1 on is expected")
        self._observer = observer
        self._clock = clock or SystemClock()
        self._max_pods = max_pods
        self._lock = threading.Lock()
        self._callbacks = CallbackQueue()
        self._pods: dict[PodUID, StartupState] = {}
        self._has_network_pod = False

    def observed_pod_on_watch(self, pod: Pod, when: Time) -> None:
        """Take a pod as the watch delivered it, at this time."""
        require_type(pod, Pod)
        _check_time(when)
        with self._lock:
            startup = self._observe(pod, when)
        self._report(pod, startup)

    def record_image_started_pulling(self, uid: str) -> None:
        """A pull for this pod begins now."""
        self._modify(
            uid, lambda known: structs.replace(known, pulls=known.pulls.started(self._now()))
        )

    def record_image_finished_pulling(self, uid: str) -> None:
        """A pull for this pod has ended now.

        Say so of a failed one too: its start would be taken for that of the next.
        """
        self._modify(
            uid, lambda known: structs.replace(known, pulls=known.pulls.finished(self._now()))
        )

    def record_init_container_started(self, uid: str, started_at: Time) -> None:
        """An init container of this pod has started; do not tell of sidecars."""
        _check_time(started_at)
        self._modify(
            uid,
            lambda known: structs.replace(
                known, init_containers=known.init_containers.started(started_at)
            ),
        )

    def record_init_container_finished(self, uid: str, finished_at: Time) -> None:
        """An init container of this pod has ended; it may be told again and again."""
        _check_time(finished_at)
        self._modify(
            uid,
            lambda known: structs.replace(
                known, init_containers=known.init_containers.reported_finished(finished_at)
            ),
        )

    def record_status_updated(self, pod: Pod) -> None:
        """The API server has accepted a status of this pod, and answers with it."""
        startup = None
        if has_pod_started(pod):
            with self._lock:
                known = self._pods.get(pod.uid, DONE)
                if not known.is_done:
                    startup = self._complete(pod, structs.replace(known, is_reported=True))
        self._report(pod, startup)

    def delete_pod_startup_state(self, uid: str) -> None:
        """The pod is gone."""
        with self._lock:
            self._pods.pop(PodUID(uid), None)

    def _observe(self, pod: Pod, when: Time) -> PodStartup | None:
        """What there is to tell. Called with the lock held."""
        known = self._pods.get(pod.uid)
        if is_terminal_phase(pod.status.phase):
            self._pods.pop(pod.uid, None)
        elif known is None and (pod.status.start_time or is_static_pod(pod) or is_mirror_pod(pod)):
            return None
        elif is_pod_unschedulable(pod):
            self._store(pod.uid, DONE)
        elif known is None:
            self._store(pod.uid, StartupState())
        elif not known.is_done and known.seen_at is None and has_pod_started(pod):
            return self._complete(pod, structs.replace(known, seen_at=when))
        return None

    def _complete(self, pod: Pod, known: StartupState) -> PodStartup | None:
        """Measure a start that was both reported and seen, in whichever order it became known."""
        seen_at = known.seen_at
        if not known.is_reported or seen_at is None or not pod.metadata.creation_timestamp:
            self._store(pod.uid, known)
            return None
        startup = measure_startup(pod, known, seen_at)
        needs_network = startup.sli_seconds is not None and not pod.spec.host_network
        if needs_network and not self._has_network_pod:
            self._has_network_pod = True
            startup = structs.replace(startup, is_first_network_pod=True)
        self._store(pod.uid, DONE)
        self._callbacks.put(partial(self._observer.pod_started, startup))
        return startup

    def _report(self, pod: Pod, startup: PodStartup | None) -> None:
        """Say what was measured, if anything was. Called without the lock."""
        if startup is None:
            return
        logger.info(
            "pod started: pod=%s/%s uid=%s seconds=%.3f pulling=%.3f initializing=%.3f",
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
            known = self._pods.get(PodUID(uid))
            if known is not None and not known.is_done:
                self._pods[PodUID(uid)] = change(known)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _check_time(value: Time) -> None:
    if not isinstance(value, Time):
        raise TypeError(
            f"expected a Time, got {type(value).__name__}; "
            "Time.from_unix_nanos(time.time_ns()) is the time now"
        )
