"""Metrics of a node, value by value; all declared metrics are collected."""

import asyncio
import re
import threading
from collections.abc import Iterable

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from podstatus.alerts.metrics import MAX_SERIES, alert_metrics
from podstatus.base.metric_values import Histogram
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.metrics.exposition import MetricPages, render
from podstatus.observe.metrics.kubelet_collector import probe_metrics
from podstatus.observe.metrics.model import MetricKind, Samples
from podstatus.observe.metrics.podstatus_collector import (
    agent_metrics,
)
from podstatus.observe.metrics.resource_collector import resource_metrics
from podstatus.observe.metrics.sli_collector import HealthCheckCollector
from podstatus.probes.decide.targets import find_targets
from podstatus.probes.decide.thresholds import CheckOutcome
from podstatus.probes.metrics import ProbeMetrics
from tests.observe.metrics.metric_pages import PAGES, pages
from tests.observe.metrics.metric_state import Watched
from tests.support.probed_pods import a_probe, probed_pod, shown
from tests.support.web.fake_alerts import FakeAlerts, an_alert


def values(entry: Iterable[Samples]) -> dict[str, float]:
    """The samples by name and labels; count and sum of histograms."""
    text = render(entry).body.decode()
    return {
        sample.name
        + "{"
        + ",".join(f"{key}={label}" for key, label in sorted(sample.labels.items()))
        + "}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


@pytest.mark.parametrize("page", PAGES)
def test_all_declared_metrics_are_collected_and_no_others(page: str) -> None:
    entry = pages(Watched())[page]
    assert [it.metric.name for it in entry if not it.values] == []
    assert {it.metric for it in entry} == set(PAGES[page])
    assert len({it.metric.name for it in entry}) == len(entry)


@pytest.mark.parametrize("page", PAGES)
def test_values_fit_what_is_declared(page: str) -> None:
    for it in pages(Watched())[page]:
        for labels, value in it.values.items():
            assert len(labels) == len(it.metric.labels), it.metric.name
            if it.metric.kind is MetricKind.HISTOGRAM:
                assert isinstance(value, Histogram)
                assert value.bounds == it.metric.buckets, it.metric.name


KUBELET = """
kubelet_node_name{node=n} 1
kubelet_desired_pods{static=} 2
kubelet_desired_pods{static=true} 1
kubelet_active_pods{static=} 2
kubelet_active_pods{static=true} 0
kubelet_mirror_pods{} 1
kubelet_running_pods{} 3
kubelet_running_containers{container_state=running} 3
kubelet_running_containers{container_state=exited} 3
kubelet_running_containers{container_state=created} 0
kubelet_working_pods{config=desired,lifecycle=sync,static=} 1
kubelet_working_pods{config=desired,lifecycle=terminating,static=true} 1
kubelet_working_pods{config=orphan,lifecycle=terminated,static=} 1
kubelet_working_pods{config=runtime_only,lifecycle=sync,static=unknown} 1
kubelet_working_pods{config=desired,lifecycle=terminated,static=} 0
kubelet_terminated_containers_total{container_type=container,exit_code=3,reason=Error} 2
kubelet_terminated_containers_total{container_type=container,exit_code=other,reason=other} 1
kubelet_pod_pending_resizes{reason=deferred} 2
kubelet_pod_in_progress_resizes{} 1
kubelet_pod_status_sync_duration_seconds_count{} 1
kubelet_pod_status_sync_duration_seconds_sum{} 0.02
kubelet_pod_start_duration_seconds_sum{} 1.5
kubelet_pod_worker_start_duration_seconds_sum{} 0.01
kubelet_pod_start_sli_duration_seconds_sum{} 2
kubelet_pod_start_total_duration_seconds_sum{} 3
kubelet_first_network_pod_start_sli_duration_seconds{} 2
kubelet_pod_worker_duration_seconds_sum{operation_type=create} 0.3
kubelet_pleg_relist_duration_seconds_sum{} 0.1
kubelet_pleg_relist_interval_seconds_sum{} 1
kubelet_pleg_pod_relist_duration_seconds_sum{} 0.2
kubelet_pleg_last_seen_seconds{} 1700000000
kubelet_runtime_operations_total{operation_type=run_podsandbox} 2
kubelet_runtime_operations_errors_total{operation_type=run_podsandbox} 1
kubelet_runtime_operations_duration_seconds_count{operation_type=run_podsandbox} 2
kubelet_started_pods_total{} 2
kubelet_started_pods_errors_total{} 1
kubelet_started_containers_total{container_type=container} 1
kubelet_started_containers_errors_total{code=RunContainerError,container_type=container} 1
kubelet_restarted_pods_total{static=} 0
kubelet_restarted_pods_total{static=true} 1
kubelet_orphaned_runtime_pods_total{} 1
kubelet_managed_ephemeral_containers{} 0
rest_client_requests_total{code=401,host=api:6443,method=PATCH} 1
rest_client_requests_total{code=<error>,host=api:6443,method=PATCH} 1
rest_client_request_duration_seconds_count{host=api:6443,verb=PATCH} 1
"""
OURS = """
podstatus_pods{node=n,phase=Running} 2
podstatus_pods{node=n,phase=Unknown} 1
podstatus_ready_pods{node=n} 0
podstatus_container_restarts{node=n} 0
podstatus_node_ready{node=n} 1
podstatus_node_lease_age_seconds{node=n} 4
podstatus_node_used{node=n,resource=cpu} 1.5
podstatus_node_used{node=n,resource=pods} 3
podstatus_node_requested{node=n,resource=cpu} 0.5
podstatus_node_allocatable{node=n,resource=cpu} 2
podstatus_node_used_ratio{node=n,resource=cpu} 0.75
podstatus_node_requested_ratio{node=n,resource=cpu} 0.25
podstatus_node_used_average{node=n,resource=cpu,window=1m} 1.25
podstatus_node_usage_age_seconds{node=n} 6
podstatus_status_unsent{} 3
podstatus_status_age_seconds{} 1.5
podstatus_status_in_flight{} 2
podstatus_status_quarantined{} 1
podstatus_outbox_statuses{} 4
podstatus_status_sync_failures_total{failure=conflict} 1
podstatus_server_reachable{} 0
podstatus_server_age_seconds{} 30
podstatus_runtime_age_seconds{} 0.5
podstatus_transitions_total{kind=phase} 4
podstatus_history_written_total{} 7
podstatus_history_overflowed_total{} 2
podstatus_history_lost_events_total{} 1
podstatus_history_waiting{} 5
podstatus_events_recorded_total{} 9
podstatus_events_sent_total{} 5
podstatus_events_patched_total{} 1
podstatus_events_dropped_total{cause=spam} 2
podstatus_events_waiting{} 1
podstatus_watchers{} 3
podstatus_watch_events_total{} 70
podstatus_watch_cuts_total{reason=slow} 1
podstatus_watch_cuts_total{reason=stop} 0
podstatus_watch_refusals_total{places=client} 0
podstatus_service_silent_seconds{service=relist} 0
podstatus_service_stalled{service=relist} 0
"""
PROBES = """
prober_probe_total{container=app,namespace=ns,pod=pod-0,pod_uid=pod-0,probe_type=Readiness,result=successful} 1
prober_probe_total{container=app,namespace=ns,pod=pod-1,pod_uid=pod-1,probe_type=Liveness,result=failed} 1
prober_probe_duration_seconds_count{container=app,namespace=ns,pod=pod-0,probe_type=Liveness} 1
"""  # noqa: E501 - a line is a line
USED = """
node_cpu_usage_seconds_total{} 99
node_memory_working_set_bytes{} 9000
pod_cpu_usage_seconds_total{namespace=ns,pod=pod-0} 3.5
pod_memory_working_set_bytes{namespace=ns,pod=pod-0} 700
container_cpu_usage_seconds_total{container=app,namespace=ns,pod=pod-0} 2.5
container_memory_working_set_bytes{container=app,namespace=ns,pod=pod-0} 500
container_start_time_seconds{container=app,namespace=ns,pod=pod-0} 1700000000.5
node_swap_usage_bytes{} 30
pod_swap_usage_bytes{namespace=ns,pod=pod-0} 30
container_swap_usage_bytes{container=app,namespace=ns,pod=pod-0} 30
container_swap_limit_bytes{container=app,namespace=ns,pod=pod-0} 90
resource_scrape_error{} 0
"""


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("/metrics", KUBELET),
        ("/metrics", OURS),
        ("/metrics/probes", PROBES),
        ("/metrics/resource", USED),
        ("/metrics/slis", "kubernetes_healthcheck{name=ping,type=healthz} 1"),
    ],
)
def test_the_values_are_these(page: str, lines: str) -> None:
    collected = values(pages(Watched())[page])
    for line in lines.strip().splitlines():
        name, _, value = line.rpartition(" ")
        assert collected.get(name) == pytest.approx(float(value)), name


def test_an_average_of_a_part_of_its_window_has_no_value() -> None:
    names = [it for it in values(pages(Watched())["/metrics"]) if "used_average" in it]
    assert names == ["podstatus_node_used_average{node=n,resource=cpu,window=1m}"]


def test_how_pods_are_adds_up_to_all_pods() -> None:
    collected = values(pages(Watched())["/metrics"])
    assert sum(value for name, value in collected.items() if "pod_health" in name) == 3


async def test_a_stalled_service_is_seen() -> None:
    watched = Watched()
    await watched.clock.advance(11)
    collected = values(agent_metrics(*watched.agent))
    assert collected["podstatus_service_stalled{service=relist}"] == 1
    assert collected["podstatus_service_silent_seconds{service=relist}"] == 11


def test_a_pod_that_ends_and_its_successor_are_one_series() -> None:
    metrics, pod = ProbeMetrics(), probed_pod("p", readiness=a_probe())
    (target,) = find_targets(pod, shown(pod), terminating=False).values()
    for uid in (PodUID("old"), PodUID("new")):
        key = structs.replace(target.key, uid=uid)
        metrics.check_finished(structs.replace(target, key=key), CheckOutcome.SUCCESS, 1.0)
    results, durations = probe_metrics(metrics)
    assert len(results.values) == 2
    (spread,) = durations.values.values()
    assert isinstance(spread, Histogram)
    assert spread.count == 2


def test_a_node_that_was_not_measured_says_so() -> None:
    _, running = Watched().usage
    collected = values(resource_metrics(None, running))
    assert collected["resource_scrape_error{}"] == 1
    assert not any(name.startswith("node_") for name in collected)


def test_checks_are_made_when_they_are_asked_for_and_counted() -> None:
    problems: list[str | None] = [None, "late"]

    def broken() -> str | None:
        raise RuntimeError

    health = HealthCheckCollector(lambda: {"relist": problems.pop, "broken": broken})
    assert values(health())["kubernetes_healthcheck{name=relist,type=healthz}"] == 0
    collected = values(health())
    assert collected["kubernetes_healthcheck{name=relist,type=healthz}"] == 1
    assert collected["kubernetes_healthcheck{name=broken,type=healthz}"] == 0
    assert collected["kubernetes_healthchecks_total{name=relist,status=error,type=healthz}"] == 1
    assert collected["kubernetes_healthchecks_total{name=relist,status=success,type=healthz}"] == 1
    assert collected["kubernetes_healthchecks_total{name=broken,status=error,type=healthz}"] == 2


def test_pages_are_looked_up_in_the_loop_and_written_elsewhere() -> None:
    threads: list[str] = []

    def look() -> list[Samples]:
        threads.append(threading.current_thread().name)
        return pages(Watched())["/metrics/slis"]

    async def main() -> list[object]:
        made = MetricPages({"slis": look, "cadvisor": lambda: None, "empty": list})
        try:
            there = await made.page("slis")
            return [
                there,
                await made.page("cadvisor"),
                await made.page("x"),
                await made.page("empty"),
            ]
        finally:
            made.close()

    there, cadvisor, unknown, empty = asyncio.run(main())
    assert threads == ["MainThread"]
    assert there is not None
    assert (cadvisor, unknown) == (None, None)
    assert empty is not None


def test_what_is_used_has_the_time_at_which_it_was_read() -> None:
    text = render(resource_metrics(*Watched().usage)).body.decode()
    times = {
        sample.name: sample.timestamp
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.timestamp is not None
    }
    assert set(times.values()) == {1_700_000_000.5}
    assert len(times) == 10


def test_alerts_have_the_format_of_prometheus() -> None:
    alerts = FakeAlerts(
        an_alert("web"),
        an_alert("db", "NotReady", "pending"),
        an_alert("old", "NotReady", "resolved"),
        an_alert("node-1", "DiskFilling", severity="critical", scope="node"),
    )
    collected = values(alert_metrics(alerts))
    shown = [name for name in collected if name.startswith("ALERTS")]
    assert [re.findall(r"=(\w*[\w-]*)", name) for name in shown] == [
        ["CrashLoop", "firing", "default", "node-1", "web", "warning"],
        ["DiskFilling", "firing", "", "node-1", "", "critical"],
        ["NotReady", "pending", "default", "node-1", "db", "warning"],
    ]
    assert collected["podstatus_alert_deliveries_total{receiver=log}"] == 3
    assert collected["podstatus_alert_rule_failures_total{rule=CrashLoop}"] == 0


def test_a_page_does_not_grow_with_all_that_goes_wrong_at_once() -> None:
    many = [an_alert(f"p{number}", state="pending") for number in range(MAX_SERIES)]
    collected = values(alert_metrics(FakeAlerts(*many, an_alert("web"), an_alert("db"))))
    shown = [name for name in collected if name.startswith("ALERTS")]
    assert len(shown) == MAX_SERIES
    assert sum("firing" in name for name in shown) == 2
    assert collected["podstatus_alerts_left_out{}"] == 2
