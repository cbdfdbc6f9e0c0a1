"""Collect the resource usage of node, pods and containers, as the kubelet's `/metrics/resource`."""

from collections.abc import Callable, Iterator, Mapping

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.kube.objects.usage import Usage
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.observe.metrics import kubelet_catalog as table
from podstatus.observe.metrics.model import (
    Labels,
    Metric,
    Samples,
    TimestampedValue,
    single,
)
from podstatus.runtime.port import RuntimePod

_SECOND = 1_000_000_000


def resource_metrics(
    snapshot: UsageSnapshot | None, running: Mapping[PodUID, RuntimePod]
) -> Iterator[Samples]:
    """Yield the metrics of `/metrics/resource`. What is not measured is omitted."""
    yield single(table.RESOURCE_ERROR, 1 if snapshot is None else 0)
    yield Samples(table.CONTAINER_START, _start_times(running))
    if snapshot is None:
        return
    pods, containers = _usage_by_pod(snapshot, running), _usage_by_container(snapshot, running)
    node: Mapping[Labels, Usage] = {(): snapshot.node}
    yield from _usage_samples(table.NODE_CPU, table.NODE_MEMORY, table.NODE_SWAP, node)
    yield from _usage_samples(table.POD_CPU, table.POD_MEMORY, table.POD_SWAP, pods)
    yield from _usage_samples(
        table.CONTAINER_CPU, table.CONTAINER_MEMORY, table.CONTAINER_SWAP, containers
    )
    yield _samples(
        table.CONTAINER_SWAP_LIMIT, containers, lambda used: used.memory.swap_limit_bytes
    )


def _usage_samples(
    cpu: Metric, memory: Metric, swap: Metric, usages: Mapping[Labels, Usage]
) -> Iterator[Samples]:
    yield _samples(cpu, usages, lambda used: used.cpu_seconds)
    yield _samples(memory, usages, lambda used: used.memory_bytes)
    yield _samples(swap, usages, lambda used: used.memory.swap_bytes)


def _samples(
    metric: Metric, usages: Mapping[Labels, Usage], value: Callable[[Usage], float | None]
) -> Samples:
    known = ((labels, value(used), used.at / _SECOND) for labels, used in usages.items())
    return Samples(
        metric,
        {labels: TimestampedValue(it, at) for labels, it, at in known if it is not None},
    )


def _usage_by_pod(
    snapshot: UsageSnapshot, running: Mapping[PodUID, RuntimePod]
) -> Mapping[Labels, Usage]:
    return {
        (pod.name, pod.namespace): used
        for uid, used in snapshot.pods.items()
        if (pod := running.get(uid)) is not None
    }


def _usage_by_container(
    snapshot: UsageSnapshot, running: Mapping[PodUID, RuntimePod]
) -> Mapping[Labels, Usage]:
    return {
        (name, pod.name, pod.namespace): used
        for uid, containers in snapshot.containers.items()
        if (pod := running.get(uid)) is not None
        for name, used in containers.items()
    }


def _start_times(running: Mapping[PodUID, RuntimePod]) -> dict[Labels, float]:
    return {
        (c.name, pod.name, pod.namespace): c.started_at.unix_nanos() / _SECOND
        for pod in running.values()
        for c in pod.facts.containers
        if c.state is ContainerRunState.RUNNING and c.started_at
    }
