"""What several services of this package depend on: other services, options and metrics."""

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.metric_values import DEFAULT_BUCKETS, CounterVec, HistogramVec
from podstatus.events.recorder import EventRecorder
from podstatus.kube.features import FeatureGates
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime
from podstatus.status.counters import STARTUP_BOUNDS
from podstatus.status.manager import StatusManager
from podstatus.workers.lifecycle.pod_registry import PodRegistry


class WorkerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds; the defaults are the kubelet's."""

    sync_frequency: float = 60.0
    """Interval between two syncs of a pod without any event."""
    retry_after: float = 10.0
    """Wait after a failed sync."""
    retry_soon_after: float = 0.5
    """First wait if the cause may pass within a moment, such as a ConfigMap that the API server
    does not show yet; doubles up to `retry_after`. Upstream: initialDurationBeforeRetry of mounts,
    pkg/util/goroutinemap/exponentialbackoff v1.36.4, which doubles up to 2 min."""
    jitter: float = 0.5
    """Maximum random extension of a wait, as a fraction, so that pods do not sync in lockstep."""
    housekeeping: float = 2.0
    """Interval between two housekeeping runs."""
    keep_terminated_pod_volumes: bool = False
    """Allow the deletion of a pod before its files and sandbox are removed."""
    gates: FeatureGates = FeatureGates()


_MAX_REASONS = 100
"""Bound of the reasons of failed container starts, which the runtime chooses."""


class WorkerMetrics:
    """Updated in one event loop; readable from any thread."""

    def __init__(self) -> None:
        self.sync_durations = HistogramVec(*DEFAULT_BUCKETS)
        """Steps of pod workers: `create`, `update`, `sync`, `kill` or `terminated`."""
        self.worker_starts = HistogramVec(*DEFAULT_BUCKETS)
        """Time from first seeing a pod to the first step of its worker."""
        self.pod_starts = HistogramVec(*STARTUP_BOUNDS)
        """Time from first seeing a pod to its phase Running."""
        self.started_containers = CounterVec()
        """Attempts, by container type: `container` or `init_container`."""
        self.failed_container_starts = CounterVec(max_series=_MAX_REASONS)
        """By container type and reason."""
        self.recreated_pods = CounterVec()
        """Finished pods that start again under the same UID, by `static`: `true` or empty."""
        self.orphans = CounterVec()
        """Pods of the runtime that no source delivers."""


class WorkerDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The node's pods, their runtime and their statuses, and how to report on them."""

    runtime: Runtime
    pleg: Pleg
    pod_manager: PodManager
    registry: PodRegistry
    statuses: StatusManager
    recorder: EventRecorder
    clock: Clock
    policy: WorkerPolicy
    metrics: WorkerMetrics
