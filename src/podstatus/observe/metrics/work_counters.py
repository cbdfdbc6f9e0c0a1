"""Counters of work that leaves no state to collect: one observer for all packages."""

from podstatus.base.metric_values import CounterVec, HistogramVec
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.metrics.kubelet_catalog import DEFAULT_BUCKETS, OPERATION_BUCKETS
from podstatus.probes.decide.targets import ProbeTarget
from podstatus.probes.decide.thresholds import CheckOutcome
from podstatus.status.counters import STARTUP_BOUNDS

_RESULTS = {
    CheckOutcome.SUCCESS: "successful",
    CheckOutcome.FAILURE: "failed",
    CheckOutcome.UNKNOWN: "unknown",
}
"""Upstream's label values: probeResultSuccessful and so on, prober_manager.go v1.36.4."""
_MAX_REASONS = 100
"""Bound of the reasons of failed container starts, which the runtime chooses."""


class PodProbeCounters:
    """Probe results of one pod; bounded by its number of probes."""

    def __init__(self) -> None:
        self.results = CounterVec()
        """By `probe_type`, `result`, `container`, `pod`, `namespace`, `pod_uid`."""
        self.seconds = HistogramVec(*DEFAULT_BUCKETS)
        """By `probe_type`, `container`, `pod`, `namespace`."""


class WorkCounts:
    """Counters and durations. Updated in one event loop; readable from any thread."""

    def __init__(self) -> None:
        self.operations = HistogramVec(*OPERATION_BUCKETS)
        """Runtime operations, by operation."""
        self.failed_operations = CounterVec()
        self.pod_worker_durations = HistogramVec(*DEFAULT_BUCKETS)
        """Steps of pod workers, by operation."""
        self.pod_worker_starts = HistogramVec(*DEFAULT_BUCKETS)
        """Time from first seeing a pod to the first step of its worker."""
        self.pod_starts = HistogramVec(*STARTUP_BOUNDS)
        self.relists = HistogramVec(*DEFAULT_BUCKETS)
        self.relist_intervals = HistogramVec(*DEFAULT_BUCKETS)
        self.pod_relists = HistogramVec(*DEFAULT_BUCKETS)
        self.started_containers = CounterVec()
        """By container type."""
        self.failed_container_starts = CounterVec(max_series=_MAX_REASONS)
        """By container type and reason."""
        self.recreated_pods = CounterVec()
        """By `static`: `true` or empty."""
        self.orphans = CounterVec()
        self.probes: dict[PodUID, PodProbeCounters] = {}

    # Runtime

    def runtime_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        self.operations.observe(seconds, operation)
        if failed:
            self.failed_operations.inc(operation)

    def relist_began(self, since_last: float) -> None:
        self.relist_intervals.observe(since_last)

    def relisted(self, seconds: float) -> None:
        """A relist has finished or failed."""
        self.relists.observe(seconds)

    def pod_relisted(self, seconds: float) -> None:
        """A relist of one pod has finished or failed."""
        self.pod_relists.observe(seconds)

    # Pod workers

    def pod_sync_finished(self, operation: str, seconds: float) -> None:
        self.pod_worker_durations.observe(seconds, operation)

    def worker_started(self, seconds: float) -> None:
        self.pod_worker_starts.observe(seconds)

    def pod_running(self, seconds: float) -> None:
        self.pod_starts.observe(seconds)

    def container_start_attempted(self, container_type: str) -> None:
        self.started_containers.inc(container_type)

    def container_start_failed(self, container_type: str, reason: str) -> None:
        self.failed_container_starts.inc(container_type, reason)

    def pod_recreated(self, *, static: bool) -> None:
        self.recreated_pods.inc("true" if static else "")

    def orphan_found(self) -> None:
        self.orphans.inc()

    # Probes

    def check_finished(self, target: ProbeTarget, outcome: CheckOutcome, seconds: float) -> None:
        """A probe has finished or could not run; the duration of a failed one is not recorded."""
        pod, key = target.pod, target.key
        probes = self.probes.setdefault(key.uid, PodProbeCounters())
        kind = key.kind.value.capitalize()
        probes.results.inc(kind, _RESULTS[outcome], key.container, pod.name, pod.namespace, key.uid)
        if outcome is not CheckOutcome.FAILURE:
            probes.seconds.observe(seconds, kind, key.container, pod.name, pod.namespace)

    def pod_removed(self, uid: PodUID) -> None:
        """Drop the probe counters of a removed pod."""
        self.probes.pop(uid, None)
