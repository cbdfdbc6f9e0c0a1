"""Collect the resource usage of node, pods and containers, as the kubelet's `/metrics/resource`."""

from collections.abc import Iterator, Mapping

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
    yield from _usage_samples(table.NODE_CPU, table.NODE_MEMORY, {(): snapshot.node})
    yield from _usage_samples(table.POD_CPU, table.POD_MEMORY, pods)
    yield from _usage_samples(table.CONTAINER_CPU, table.CONTAINER_MEMORY, containers)


def container_metrics(
    snapshot: UsageSnapshot | None, running: Mapping[PodUID, RuntimePod]
) -> Iterator[Samples]:
    """Yield the container metrics of cAdvisor's page."""
    containers = {} if snapshot is None else _usage_by_container(snapshot, running)
    yield from _usage_samples(table.CONTAINER_CPU, table.CONTAINER_MEMORY, containers)
    yield Samples(table.CONTAINER_START, _start_times(running))


def _usage_samples(
    cpu: Metric, memory: Metric, usages: Mapping[Labels, Usage]
) -> Iterator[Samples]:
    seconds = {
        labels: TimestampedValue(used.cpu_seconds, used.at / _SECOND)
        for labels, used in usages.items()
        if used.cpu_seconds is not None
    }
    yield Samples(cpu, seconds)
    bytes_ = {
        labels: TimestampedValue(used.memory_bytes, used.at / _SECOND)
        for labels, used in usages.items()
        if used.memory_bytes is not None
    }
    yield Samples(memory, bytes_)


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
