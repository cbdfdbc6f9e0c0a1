"""Collect the kubelet's metrics of this node."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from podstatus.base.metric_values import OVERFLOW_LABEL_VALUE, Histogram
from podstatus.client.rest.server_health import RequestMetrics
from podstatus.eviction.metrics import EvictionMetrics
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, SandboxState
from podstatus.observe.metrics import kubelet_catalog as table
from podstatus.observe.metrics.model import Labels, Samples, by_label, single
from podstatus.probes.metrics import ProbeMetrics
from podstatus.runtime.instrumented import RUN_POD
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.port import RuntimePod
from podstatus.status.counters import Counts
from podstatus.workers.dependencies import WorkerMetrics
from podstatus.workers.lifecycle.state_machine import PodLifecycle, PodWorkerState

_SECOND = 1_000_000_000
_STATIC = ("", "true")
_LIFECYCLES = {
    PodWorkerState.SYNC: "sync",
    PodWorkerState.TERMINATING: "terminating",
    PodWorkerState.TERMINATED: "terminated",
    PodWorkerState.FINISHED: "terminated",
}
"""Upstream counts finished pods as terminated until they are removed."""
_CONFIGS = (("desired", ""), ("desired", "true"), ("orphan", ""), ("orphan", "true"))


class KubeletMetricsSource(msgspec.Struct, frozen=True, kw_only=True):
    """Sources of the kubelet's metrics. None of them blocks."""

    node_name: str
    counts: Callable[[], Counts]
    runtime: RuntimeMetrics
    workers: WorkerMetrics
    evictions: EvictionMetrics
    desired_pods: Callable[[], Sequence[Pod]]
    mirror_pods: Callable[[], Sequence[Pod]]
    active_pods: Callable[[], Sequence[Pod]]
    lifecycles: Callable[[], Collection[PodLifecycle]]
    running: Callable[[], Mapping[PodUID, RuntimePod]]
    last_relist: Callable[[], int | None]


def kubelet_metrics(state: KubeletMetricsSource) -> Iterator[Samples]:
    """Yield the samples of the kubelet's metrics on `/metrics`."""
    yield by_label(table.NODE_NAME, {state.node_name: 1})
    yield from _pod_samples(state)
    yield from _container_samples(state.running())
    yield from _status_samples(state.counts())
    yield from _runtime_samples(state.runtime)
    yield from _worker_samples(state.workers)
    yield Samples(table.EVICTIONS, state.evictions.evictions.snapshot())
    yield Samples(table.EVICTION_STATS_AGE, state.evictions.stats_age.snapshot())
    last = state.last_relist()
    yield single(table.RELIST_LAST_SEEN, None if last is None else float(last // _SECOND))


def _pod_samples(state: KubeletMetricsSource) -> Iterator[Samples]:
    desired = state.desired_pods()
    yield by_label(table.DESIRED_PODS, _by_static(desired))
    yield by_label(table.ACTIVE_PODS, _by_static(state.active_pods()))
    yield single(table.MIRROR_PODS, len(state.mirror_pods()))
    ephemeral = sum(len(pod.spec.ephemeral_containers or ()) for pod in desired)
    yield single(table.EPHEMERAL_CONTAINERS, ephemeral)
    yield Samples(table.WORKING_PODS, _working_pods(state.lifecycles()))


def _by_static(pods: Sequence[Pod]) -> dict[str, int]:
    static = sum(map(is_static_pod, pods))
    return {"": len(pods) - static, "true": static}


def _working_pods(lives: Collection[PodLifecycle]) -> dict[Labels, int]:
    """Count by lifecycle, config and static; also those that are 0, as upstream."""
    counts = Counter((_LIFECYCLES[life.state], *_config_labels(life)) for life in lives)
    configs = (*_CONFIGS, ("runtime_only", "unknown"))
    return {
        (lifecycle, *config): counts[lifecycle, *config]
        for config in configs
        for lifecycle in ("sync", "terminating", "terminated")
    }


def _config_labels(life: PodLifecycle) -> tuple[str, str]:
    if life.pod is None:
        return "runtime_only", "unknown"
    return "orphan" if life.source_removed else "desired", _STATIC[is_static_pod(life.pod)]


def _container_samples(pods: Mapping[PodUID, RuntimePod]) -> Iterator[Samples]:
    states = Counter(c.state for pod in pods.values() for c in pod.facts.containers)
    yield by_label(table.RUNNING_CONTAINERS, {it.value: states[it] for it in ContainerRunState})
    ready = (any(s.state is SandboxState.READY for s in p.facts.sandboxes) for p in pods.values())
    yield single(table.RUNNING_PODS, sum(ready))


def _status_samples(counts: Counts) -> Iterator[Samples]:
    terminations: dict[Labels, int] = {
        (end.container_type.value, str(end.exit_code), end.reason): count
        for end, count in counts.terminated_containers.items()
    }
    for kind, count in counts.other_terminated_containers.items():
        terminations[kind.value, OVERFLOW_LABEL_VALUE, OVERFLOW_LABEL_VALUE] = count
    yield Samples(table.TERMINATED_CONTAINERS, terminations)
    yield by_label(table.PENDING_RESIZES, counts.pending_resizes)
    yield single(table.RESIZES_IN_PROGRESS, counts.resizes_in_progress)
    yield single(table.STATUS_SYNC, counts.status_sync_duration)
    yield single(table.POD_START_SLI, counts.pod_start_sli_duration)
    yield single(table.POD_START_TOTAL, counts.pod_start_total_duration)
    yield single(table.FIRST_NETWORK_POD, counts.first_network_pod_start_sli_seconds)


def _runtime_samples(metrics: RuntimeMetrics) -> Iterator[Samples]:
    operations, failed = metrics.operations.snapshot(), metrics.failed_operations.snapshot()
    calls = {kind: durations.count for kind, durations in operations.items()}
    yield Samples(table.RUNTIME_OPERATIONS, calls)
    yield Samples(table.RUNTIME_OPERATIONS_DURATION, operations)
    yield Samples(table.RUNTIME_OPERATIONS_ERRORS, failed)
    # Counted in the runtime; upstream counts around the same call.
    yield single(table.STARTED_PODS, calls.get((RUN_POD,), 0))
    yield single(table.STARTED_PODS_ERRORS, failed.get((RUN_POD,), 0))
    yield Samples(table.RELIST_DURATION, metrics.relists.snapshot())
    yield Samples(table.RELIST_INTERVAL, metrics.relist_intervals.snapshot())
    yield Samples(table.POD_RELIST_DURATION, metrics.pod_relists.snapshot())


def _worker_samples(metrics: WorkerMetrics) -> Iterator[Samples]:
    yield Samples(table.STARTED_CONTAINERS, metrics.started_containers.snapshot())
    yield Samples(table.STARTED_CONTAINERS_ERRORS, metrics.failed_container_starts.snapshot())
    recreated = metrics.recreated_pods.snapshot()
    yield by_label(table.RESTARTED_PODS, {it: recreated.get((it,), 0) for it in _STATIC})
    yield single(table.ORPHANED_PODS, metrics.orphans.snapshot().get((), 0))
    yield Samples(table.POD_WORKER, metrics.sync_durations.snapshot())
    yield Samples(table.POD_START, metrics.pod_starts.snapshot())
    yield Samples(table.POD_WORKER_START, metrics.worker_starts.snapshot())


def probe_metrics(metrics: ProbeMetrics) -> Iterator[Samples]:
    """Yield the metrics of `/metrics/probes`, for the probes that the agent runs."""
    pods = list(metrics.pods.values())
    results = {labels: n for pod in pods for labels, n in pod.results.snapshot().items()}
    yield Samples(table.PROBES_TOTAL, results)
    seconds: dict[Labels, Histogram] = {}
    for pod in pods:
        for labels, durations in pod.seconds.snapshot().items():
            # A pod that terminates and its successor have the same name.
            previous = seconds.get(labels)
            seconds[labels] = durations if previous is None else previous.merge(durations)
    yield Samples(table.PROBE_DURATION, seconds)


def request_metrics(requests: RequestMetrics) -> Iterator[Samples]:
    yield Samples(table.REQUESTS, requests.responses.snapshot())
    yield Samples(table.REQUEST_DURATION, requests.seconds.snapshot())
