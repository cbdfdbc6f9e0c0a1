"""Counts what the rooms do while they do it: an observer for all of them at once."""

from podstatus.base.metrics import CounterVec, HistogramVec
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.metrics.kubelet_catalog import DEFAULT_BUCKETS, OPERATION_BUCKETS
from podstatus.probes.targets import ProbeTarget
from podstatus.probes.thresholds import CheckOutcome
from podstatus.status.metrics import STARTUP_BOUNDS

_RESULTS = {
    CheckOutcome.SUCCESS: "successful",
    CheckOutcome.FAILURE: "failed",
    CheckOutcome.UNKNOWN: "unknown",
}
"""Upstream's words: probeResultSuccessful and so on, prober_manager.go v1.36.4."""
_MAX_REASONS = 100
"""Reasons why containers did not start: they are words, but those of a runtime."""


class PodProbeCounters:
    """What the checks of one pod came to; bounded by its probes."""

    def __init__(self) -> None:
        self.results = CounterVec()
        """By `probe_type`, `result`, `container`, `pod`, `namespace`, `pod_uid`."""
        self.seconds = HistogramVec(*DEFAULT_BUCKETS)
        """By `probe_type`, `container`, `pod`, `namespace`."""


class WorkCounts:
    """What was done so far. Counted in one event loop; the counts may be read from anywhere."""

    def __init__(self) -> None:
        self.operations = HistogramVec(*OPERATION_BUCKETS)
        """Of the runtime, by operation."""
        self.failed_operations = CounterVec()
        self.pod_worker_durations = HistogramVec(*DEFAULT_BUCKETS)
        """Of pods, by operation."""
        self.pod_worker_starts = HistogramVec(*DEFAULT_BUCKETS)
        """How long after a pod was first seen."""
        self.pod_starts = HistogramVec(*STARTUP_BOUNDS)
        self.relists = HistogramVec(*DEFAULT_BUCKETS)
        self.relist_intervals = HistogramVec(*DEFAULT_BUCKETS)
        self.pod_relists = HistogramVec(*DEFAULT_BUCKETS)
        self.started_containers = CounterVec()
        """By type."""
        self.failed_container_starts = CounterVec(max_series=_MAX_REASONS)
        """By type and reason."""
        self.recreated_pods = CounterVec()
        """By `static`: `true` or nothing."""
        self.orphans = CounterVec()
        self.probes: dict[PodUID, PodProbeCounters] = {}

    # The runtime

    def runtime_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        """An operation came to its end."""
        self.operations.observe(seconds, operation)
        if failed:
            self.failed_operations.inc(operation)

    def relist_began(self, since_last: float) -> None:
        """All pods are to be listed."""
        self.relist_intervals.observe(since_last)

    def relisted(self, seconds: float) -> None:
        """The list has come, or has failed."""
        self.relists.observe(seconds)

    def pod_relisted(self, seconds: float) -> None:
        """The same, of one pod."""
        self.pod_relists.observe(seconds)

    # The workers

    def pod_sync_finished(self, operation: str, seconds: float) -> None:
        """A step of a pod was taken."""
        self.pod_worker_durations.observe(seconds, operation)

    def worker_started(self, seconds: float) -> None:
        """The first step of a new pod begins."""
        self.pod_worker_starts.observe(seconds)

    def pod_running(self, seconds: float) -> None:
        """The phase of a pod is Running."""
        self.pod_starts.observe(seconds)

    def container_start_attempted(self, container_type: str) -> None:
        """A container is about to be started."""
        self.started_containers.inc(container_type)

    def container_start_failed(self, container_type: str, reason: str) -> None:
        """It could not be started."""
        self.failed_container_starts.inc(container_type, reason)

    def pod_recreated(self, *, static: bool) -> None:
        """A pod has ended, and begins again under the same UID."""
        self.recreated_pods.inc("true" if static else "")

    def orphan_found(self) -> None:
        """The runtime has something of a pod that nobody asks for."""
        self.orphans.inc()

    # The probes

    def check_finished(self, target: ProbeTarget, outcome: CheckOutcome, seconds: float) -> None:
        """A check was made, or was tried in vain; how long a failed one took says nothing."""
        pod, key = target.pod, target.key
        probes = self.probes.setdefault(key.uid, PodProbeCounters())
        kind = key.kind.value.capitalize()
        probes.results.inc(kind, _RESULTS[outcome], key.container, pod.name, pod.namespace, key.uid)
        if outcome is not CheckOutcome.FAILURE:
            probes.seconds.observe(seconds, kind, key.container, pod.name, pod.namespace)

    def pod_removed(self, uid: PodUID) -> None:
        """Nothing of this pod is checked any more."""
        self.probes.pop(uid, None)
