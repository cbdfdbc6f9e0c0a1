"""Metrics in the formats of Prometheus and OpenMetrics.

A catalog declares metrics once (name, type, labels, buckets); a collector returns the samples of
one moment; `work_counters` and `watch_counters` count work that leaves no state to collect.
`/metrics` handlers belong in web. Upstream: pkg/kubelet/metrics, component-base/metrics. Tests:
tests/observe/metrics.
"""
