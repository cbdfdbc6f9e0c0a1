"""The metrics have the kubelet's names, labels and buckets.

WANTED is from pkg/kubelet/metrics/metrics.go and pkg/kubelet/prober/prober_manager.go of v1.36.4;
`rest_client_*` is from component-base/metrics/prometheus/restclient/metrics.go v0.36.4.
"""

import pytest

from podstatus.observe.metrics.model import MetricKind
from tests.observe.metrics.metric_pages import PAGES

SYNC = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60)
START = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900),
    *(1200, 1800, 2700, 3600),
)
USUAL = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
OPERATIONS = (
    *(0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125, 3.0517578125),
    *(7.62939453125, 19.073486328125, 47.6837158203125, 119.20928955078125),
    *(298.0232238769531, 745.0580596923828),
)
REQUESTS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
COUNTER, GAUGE = MetricKind.COUNTER, MetricKind.GAUGE

WANTED = [
    ("kubelet_pod_status_sync_duration_seconds", "", SYNC),
    ("kubelet_pod_start_duration_seconds", "", START),
    ("kubelet_pod_worker_start_duration_seconds", "", USUAL),
    ("kubelet_pod_start_sli_duration_seconds", "", START),
    ("kubelet_pod_start_total_duration_seconds", "", START),
    ("kubelet_first_network_pod_start_sli_duration_seconds", "", GAUGE),
    ("kubelet_pod_worker_duration_seconds", "operation_type", USUAL),
    ("kubelet_running_pods", "", GAUGE),
    ("kubelet_running_containers", "container_state", GAUGE),
    ("kubelet_desired_pods", "static", GAUGE),
    ("kubelet_active_pods", "static", GAUGE),
    ("kubelet_mirror_pods", "", GAUGE),
    ("kubelet_working_pods", "lifecycle config static", GAUGE),
    ("kubelet_restarted_pods_total", "static", COUNTER),
    ("kubelet_evictions", "eviction_signal", COUNTER),
    ("kubelet_eviction_stats_age_seconds", "eviction_signal", USUAL),
    ("kubelet_started_pods_total", "", COUNTER),
    ("kubelet_started_containers_total", "container_type", COUNTER),
    ("kubelet_terminated_containers_total", "container_type exit_code reason", COUNTER),
    ("kubelet_pleg_relist_duration_seconds", "", USUAL),
    ("kubelet_pleg_relist_interval_seconds", "", USUAL),
    ("kubelet_pleg_pod_relist_duration_seconds", "", USUAL),
    ("kubelet_pleg_last_seen_seconds", "", GAUGE),
    ("kubelet_runtime_operations_total", "operation_type", COUNTER),
    ("kubelet_runtime_operations_duration_seconds", "operation_type", OPERATIONS),
    ("kubelet_runtime_operations_errors_total", "operation_type", COUNTER),
    ("kubelet_node_name", "node", GAUGE),
    ("kubelet_pod_pending_resizes", "reason", GAUGE),
    ("kubelet_pod_in_progress_resizes", "", GAUGE),
    ("prober_probe_total", "probe_type result container pod namespace pod_uid", COUNTER),
    ("prober_probe_duration_seconds", "probe_type container pod namespace", USUAL),
    ("rest_client_requests_total", "code method host", COUNTER),
    ("rest_client_request_duration_seconds", "verb host", REQUESTS),
]
BESIDES = {
    "kubelet_managed_ephemeral_containers",
    "kubelet_orphaned_runtime_pods_total",
    "kubelet_started_containers_errors_total",
    "kubelet_started_pods_errors_total",
}
"""Also in metrics.go, without a counterpart in WANTED."""
ALL = {metric.name: metric for page in PAGES.values() for metric in page}


@pytest.mark.parametrize(("name", "labels", "kind"), WANTED, ids=[row[0] for row in WANTED])
def test_a_metric_has_the_kubelets_name_labels_and_buckets(
    name: str, labels: str, kind: MetricKind | tuple[float, ...]
) -> None:
    metric = ALL[name]
    assert metric.labels == tuple(labels.split())
    if isinstance(kind, MetricKind):
        assert (metric.kind, metric.buckets) == (kind, ())
    else:
        assert metric.kind is MetricKind.HISTOGRAM
        assert metric.buckets == pytest.approx(kind, rel=1e-12)


def test_no_other_metric_is_called_the_kubelets() -> None:
    kubelets = {name for name in ALL if name.startswith(("kubelet_", "prober_", "rest_"))}
    assert kubelets == {name for name, _, _ in WANTED} | BESIDES


def test_what_is_ours_says_so() -> None:
    others = (
        "kubelet_",
        "prober_",
        "rest_client_",
        "kubernetes_",
        "node_",
        "pod_",
        "container_",
        "machine_",
        "process_",
    )
    ours = {name for name in ALL if not name.startswith((*others, "resource_scrape_error"))}
    # A metric of Prometheus itself, which dashboards use.
    assert all(name.startswith("podstatus_") for name in ours - {"ALERTS"})


@pytest.mark.parametrize("page", PAGES)
def test_a_page_declares_each_metric_once(page: str) -> None:
    names = [metric.name for metric in PAGES[page]]
    assert len(names) == len(set(names))


def test_only_what_names_a_pod_upstream_names_a_pod() -> None:
    naming = {name for name, metric in ALL.items() if {"pod", "pod_uid"} & set(metric.labels)}
    assert {name for name in naming if not name.startswith(("container_", "pod_"))} == {
        "prober_probe_total",
        "prober_probe_duration_seconds",
        "ALERTS",
    }
