"""Durations of relists and of the operations of a runtime."""

from podstatus.base.metric_values import DEFAULT_BUCKETS, CounterVec, HistogramVec

OPERATION_BUCKETS = tuple(0.005 * 2.5**power for power in range(14))
"""Seconds. Upstream: RuntimeOperationsDuration."""


class RuntimeMetrics:
    """Updated in one event loop; readable from any thread."""

    def __init__(self) -> None:
        self.operations = HistogramVec(*OPERATION_BUCKETS)
        """By operation."""
        self.failed_operations = CounterVec()
        self.relists = HistogramVec(*DEFAULT_BUCKETS)
        """Lists of all pods, successful or failed."""
        self.relist_intervals = HistogramVec(*DEFAULT_BUCKETS)
        """From the start of a list of all pods to the start of the next."""
        self.pod_relists = HistogramVec(*DEFAULT_BUCKETS)
        """Lists of one pod, successful or failed."""

    def runtime_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        self.operations.observe(seconds, operation)
        if failed:
            self.failed_operations.inc(operation)
