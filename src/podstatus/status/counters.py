"""In-memory counters for the status manager and the startup latency tracker."""

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec import structs

from podstatus.base.metric_values import Histogram
from podstatus.status.decide.startup_measurement import PodStartup
from podstatus.status.decide.update import ContainerType, Termination

K = TypeVar("K")

MAX_SERIES = 1000
"""Label sets of terminations that are counted separately. Usual nodes have some dozens; without a
limit, a container with random exit codes could exhaust memory here and in the metrics backend."""

MAX_REASON_LENGTH = 128
"""Characters. Reasons are CamelCase words; a longer text from a runtime gets no series."""

SYNC_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60)
"""Seconds. Upstream: PodStatusSyncDuration, metrics.go v1.36.4."""

STARTUP_BOUNDS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60),
    *(120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600),
)
"""Seconds. Upstream: podStartupDurationBuckets, metrics.go v1.36.4."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of all counters; the fields name the kubelet's metrics."""

    terminated_containers: Mapping[Termination, int] = {}
    """`terminated_containers_total`."""
    other_terminated_containers: Mapping[ContainerType, int] = {}
    """Terminations without a series of their own, by container type; add both for the total."""
    pending_resizes: Mapping[str, int] = {}
    """`pod_pending_resizes`: pending resizes by reason."""
    resizes_in_progress: int = 0
    """`pod_in_progress_resizes`: resizes in progress."""
    status_sync_duration: Histogram = Histogram.empty(*SYNC_BOUNDS)
    """`pod_status_sync_duration_seconds`."""
    sync_failures: Mapping[str, int] = {}
    """Failed syncs by kind: gone, conflict, busy and so on. Not an upstream metric."""
    pod_start_total_duration: Histogram = Histogram.empty(*STARTUP_BOUNDS)
    """`pod_start_total_duration_seconds`."""
    pod_start_sli_duration: Histogram = Histogram.empty(*STARTUP_BOUNDS)
    """`pod_start_sli_duration_seconds`: stateless pods, without pulls and init containers."""
    first_network_pod_start_sli_seconds: float | None = None
    """`first_network_pod_start_sli_duration_seconds`; None until it is measured."""


class Counters:
    """Observer for the status manager and the startup latency tracker; may serve both.

    Thread-safe. Every event replaces one frozen value, so `snapshot` is cheap and consistent.
    """

    def __init__(self, *, max_series: int = MAX_SERIES) -> None:
        if max_series < 0:
            raise ValueError(f"max_series is {max_series!r}; must be at least 0")
        self._max_series = max_series
        self._lock = threading.Lock()
        self._counts = Counts()

    def snapshot(self) -> Counts:
        return self._counts

    def container_terminated(self, termination: Termination) -> None:
        """Count a termination; above `max_series`, count it by container type only."""
        with self._lock:
            counts = self._counts
            if self._has_own_series(termination):
                kinds = _incremented(counts.terminated_containers, termination)
                self._counts = structs.replace(counts, terminated_containers=kinds)
            else:
                others = _incremented(
                    counts.other_terminated_containers, termination.container_type
                )
                self._counts = structs.replace(counts, other_terminated_containers=others)

    def _has_own_series(self, termination: Termination) -> bool:
        kinds = self._counts.terminated_containers
        if termination in kinds:
            return True
        return len(kinds) < self._max_series and len(termination.reason) <= MAX_REASON_LENGTH

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        """Set the pending resizes; there are at most as many reasons as pods."""
        with self._lock:
            self._counts = structs.replace(
                self._counts, pending_resizes=MappingProxyType({**by_reason})
            )

    def resizes_in_progress(self, count: int) -> None:
        with self._lock:
            self._counts = structs.replace(self._counts, resizes_in_progress=count)

    def status_synced(self, duration_seconds: float) -> None:
        with self._lock:
            durations = self._counts.status_sync_duration.observe(duration_seconds)
            self._counts = structs.replace(self._counts, status_sync_duration=durations)

    def sync_failed(self, failure: str) -> None:
        with self._lock:
            failures = _incremented(self._counts.sync_failures, failure)
            self._counts = structs.replace(self._counts, sync_failures=failures)

    def pod_started(self, startup: PodStartup) -> None:
        """Add the pod's startup durations to the histograms."""
        with self._lock:
            counts = self._counts
            total, sli = counts.pod_start_total_duration, counts.pod_start_sli_duration
            first = counts.first_network_pod_start_sli_seconds
            if startup.sli_seconds is not None:
                sli = sli.observe(startup.sli_seconds)
            if startup.is_first_network_pod:
                first = startup.sli_seconds
            self._counts = structs.replace(
                counts,
                pod_start_total_duration=total.observe(startup.total_seconds),
                pod_start_sli_duration=sli,
                first_network_pod_start_sli_seconds=first,
            )


def _incremented(counts: Mapping[K, int], key: K) -> Mapping[K, int]:
    return MappingProxyType({**counts, key: counts.get(key, 0) + 1})
