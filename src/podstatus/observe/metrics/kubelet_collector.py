"""What the kubelet's metrics say of this node at one moment."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from podstatus.base.metrics import OVERFLOW_LABEL_VALUE, Histogram
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, SandboxState
from podstatus.observe.metrics import kubelet_catalog as table
from podstatus.observe.metrics.model import Labels, Told, each, one, told
from podstatus.observe.metrics.work_counters import WorkCounts
from podstatus.runtime.instrumented import RUN_POD
from podstatus.runtime.port import RuntimePod
from podstatus.status.metrics import Counts
from podstatus.workers.lifecycle.state_machine import PodLifecycle, PodWorkerState

_SECOND = 1_000_000_000
_STATIC = ("", "true")
_LIFECYCLES = {
    PodWorkerState.SYNC: "sync",
    PodWorkerState.TERMINATING: "terminating",
    PodWorkerState.TERMINATED: "terminated",
    PodWorkerState.FINISHED: "terminated",
}
"""Upstream keeps what has finished as terminated until it is gone."""
_CONFIGS = (("desired", ""), ("desired", "true"), ("orphan", ""), ("orphan", "true"))


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the kubelet's metrics come from. Nothing of it waits."""

    node_name: str
    counts: Callable[[], Counts]
    work: WorkCounts
    desired_pods: Callable[[], Sequence[Pod]]
    mirror_pods: Callable[[], Sequence[Pod]]
    active_pods: Callable[[], Sequence[Pod]]
    lives: Callable[[], Collection[PodLifecycle]]
    running: Callable[[], Mapping[PodUID, RuntimePod]]
    last_listed: Callable[[], int | None]


def kubelet_metrics(state: NodeState) -> Iterator[Told]:
    """All of `kubelet_table.KUBELET`."""
    yield each(table.NODE_NAME, {state.node_name: 1})
    yield from _pods(state)
    yield from _containers(state.running())
    yield from _statuses(state.counts())
    yield from _work(state.work)
    last = state.last_listed()
    yield one(table.RELIST_LAST_SEEN, None if last is None else float(last // _SECOND))


def _pods(state: NodeState) -> Iterator[Told]:
    desired = state.desired_pods()
    yield each(table.DESIRED_PODS, _by_static(desired))
    yield each(table.ACTIVE_PODS, _by_static(state.active_pods()))
    yield one(table.MIRROR_PODS, len(state.mirror_pods()))
    ephemeral = sum(len(pod.spec.ephemeral_containers or ()) for pod in desired)
    yield one(table.EPHEMERAL_CONTAINERS, ephemeral)
    yield told(table.WORKING_PODS, _working(state.lives()))


def _by_static(pods: Sequence[Pod]) -> dict[str, int]:
    static = sum(map(is_static_pod, pods))
    return {"": len(pods) - static, "true": static}


def _working(lives: Collection[PodLifecycle]) -> dict[Labels, int]:
    """By lifecycle, config and static; also those of which there are none, as upstream."""
    found = Counter((_LIFECYCLES[life.state], *_config(life)) for life in lives)
    configs = (*_CONFIGS, ("runtime_only", "unknown"))
    return {
        (lifecycle, *config): found[lifecycle, *config]
        for config in configs
        for lifecycle in ("sync", "terminating", "terminated")
    }


def _config(life: PodLifecycle) -> tuple[str, str]:
    if life.pod is None:
        return "runtime_only", "unknown"
    return "orphan" if life.source_removed else "desired", _STATIC[is_static_pod(life.pod)]


def _containers(pods: Mapping[PodUID, RuntimePod]) -> Iterator[Told]:
    states = Counter(c.state for pod in pods.values() for c in pod.facts.containers)
    yield each(table.RUNNING_CONTAINERS, {it.value: states[it] for it in ContainerRunState})
    ready = (any(s.state is SandboxState.READY for s in p.facts.sandboxes) for p in pods.values())
    yield one(table.RUNNING_PODS, sum(ready))


def _statuses(counts: Counts) -> Iterator[Told]:
    ends: dict[Labels, int] = {
        (end.container_type.value, str(end.exit_code), end.reason): count
        for end, count in counts.terminated_containers.items()
    }
    for kind, count in counts.other_terminated_containers.items():
        ends[kind.value, OVERFLOW_LABEL_VALUE, OVERFLOW_LABEL_VALUE] = count
    yield told(table.TERMINATED_CONTAINERS, ends)
    yield each(table.PENDING_RESIZES, counts.pending_resizes)
    yield one(table.RESIZES_IN_PROGRESS, counts.resizes_in_progress)
    yield one(table.STATUS_SYNC, counts.status_sync_duration)
    yield one(table.POD_START_SLI, counts.pod_start_sli_duration)
    yield one(table.POD_START_TOTAL, counts.pod_start_total_duration)
    yield one(table.FIRST_NETWORK_POD, counts.first_network_pod_start_sli_seconds)


def _work(work: WorkCounts) -> Iterator[Told]:
    operations, failed = work.operations.snapshot(), work.failed_operations.snapshot()
    calls = {kind: spread.count for kind, spread in operations.items()}
    yield told(table.RUNTIME_OPERATIONS, calls)
    yield told(table.RUNTIME_OPERATIONS_DURATION, operations)
    yield told(table.RUNTIME_OPERATIONS_ERRORS, failed)
    # What is counted at the runtime is the same as upstream counts around it.
    yield one(table.STARTED_PODS, calls.get((RUN_POD,), 0))
    yield one(table.STARTED_PODS_ERRORS, failed.get((RUN_POD,), 0))
    yield told(table.STARTED_CONTAINERS, work.started_containers.snapshot())
    yield told(table.STARTED_CONTAINERS_ERRORS, work.not_started_containers.snapshot())
    returned = work.returned_pods.snapshot()
    yield each(table.RESTARTED_PODS, {it: returned.get((it,), 0) for it in _STATIC})
    yield one(table.ORPHANED_PODS, work.orphans.snapshot().get((), 0))
    yield told(table.POD_WORKER, work.steps.snapshot())
    yield told(table.POD_START, work.pod_starts.snapshot())
    yield told(table.POD_WORKER_START, work.first_steps.snapshot())
    yield told(table.RELIST_DURATION, work.relists.snapshot())
    yield told(table.RELIST_INTERVAL, work.relist_intervals.snapshot())
    yield told(table.POD_RELIST_DURATION, work.pod_relists.snapshot())


def probe_metrics(work: WorkCounts) -> Iterator[Told]:
    """All of `kubelet_table.PROBES`: of the checks that the agent makes."""
    pods = list(work.probes.values())
    results = {labels: n for pod in pods for labels, n in pod.results.snapshot().items()}
    yield told(table.PROBES_TOTAL, results)
    seconds: dict[Labels, Histogram] = {}
    for pod in pods:
        for labels, spread in pod.seconds.snapshot().items():
            # A pod that ends and its successor have the same name.
            known = seconds.get(labels)
            seconds[labels] = spread if known is None else known.merge(spread)
    yield told(table.PROBE_DURATION, seconds)
