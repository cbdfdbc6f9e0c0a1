"""Results and durations of the probes of all pods."""

from podstatus.base.metric_values import DEFAULT_BUCKETS, CounterVec, HistogramVec
from podstatus.kube.objects.pod import PodUID
from podstatus.probes.decide.targets import ProbeTarget
from podstatus.probes.decide.thresholds import CheckOutcome

_RESULTS = {
    CheckOutcome.SUCCESS: "successful",
    CheckOutcome.FAILURE: "failed",
    CheckOutcome.UNKNOWN: "unknown",
}
"""Upstream's label values: probeResultSuccessful and so on, prober_manager.go v1.36.4."""


class PodProbeCounters:
    """Probe results of one pod; bounded by its number of probes."""

    def __init__(self) -> None:
        self.results = CounterVec()
        """By `probe_type`, `result`, `container`, `pod`, `namespace`, `pod_uid`."""
        self.seconds = HistogramVec(*DEFAULT_BUCKETS)
        """By `probe_type`, `container`, `pod`, `namespace`."""


class ProbeMetrics:
    """Updated in one event loop; readable from any thread."""

    def __init__(self) -> None:
        self.pods: dict[PodUID, PodProbeCounters] = {}
        """Of each pod until its probes have stopped."""

    def check_finished(self, target: ProbeTarget, outcome: CheckOutcome, seconds: float) -> None:
        """A probe has finished or could not run; the duration of a failed one is not recorded."""
        pod, key = target.pod, target.key
        probes = self.pods.setdefault(key.uid, PodProbeCounters())
        kind = key.kind.value.capitalize()
        probes.results.inc(kind, _RESULTS[outcome], key.container, pod.name, pod.namespace, key.uid)
        if outcome is not CheckOutcome.FAILURE:
            probes.seconds.observe(seconds, kind, key.container, pod.name, pod.namespace)
