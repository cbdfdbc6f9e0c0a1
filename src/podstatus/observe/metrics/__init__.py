"""Metrics in the formats of Prometheus and OpenMetrics.

A catalog declares metrics once (name, type, labels, buckets); a collector returns the samples of
one moment. Work that leaves no state is counted by the package that does it (`RuntimeMetrics`,
`WorkerMetrics`, `ProbeMetrics`), the clients of /v1/watch in `watch_counters`. `/metrics` handlers
belong in web. Upstream: pkg/kubelet/metrics, component-base/metrics. Tests:
tests/observe/metrics.
"""
