"""What node, pods and containers use, as the kubelet's `/metrics/resource` tells it."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.kube.objects.usage import Usage
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.observe.metrics import kubelet_catalog as table
from podstatus.observe.metrics.model import At, Labels, Metric, Told, one, told
from podstatus.runtime.port import RuntimePod

_SECOND = 1_000_000_000


class UsageState(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is known from. Nothing of it waits."""

    snapshot: Callable[[], UsageSnapshot | None]
    running: Callable[[], Mapping[PodUID, RuntimePod]]
    metered: bool
    """Whether anybody measures what containers use."""


def resource_metrics(state: UsageState) -> Iterator[Told]:
    """All of `kubelet_table.RESOURCES`. What nobody measures is not there."""
    snapshot, running = state.snapshot(), state.running()
    yield one(table.RESOURCE_ERROR, 1 if snapshot is None else 0)
    yield told(table.CONTAINER_START, _starts(running))
    if snapshot is None:
        return
    pods, containers = _by_pod(snapshot, running), _by_container(snapshot, running)
    yield from _used(table.NODE_CPU, table.NODE_MEMORY, {(): snapshot.node})
    yield from _used(table.POD_CPU, table.POD_MEMORY, pods)
    yield from _used(table.CONTAINER_CPU, table.CONTAINER_MEMORY, containers)


def container_metrics(state: UsageState) -> Iterable[Told] | None:
    """What cAdvisor would tell and we know: of containers. None if nobody measures them."""
    snapshot, running = state.snapshot(), state.running()
    if not state.metered:
        return None
    containers = {} if snapshot is None else _by_container(snapshot, running)
    used = _used(table.CONTAINER_CPU, table.CONTAINER_MEMORY, containers)
    return (*used, told(table.CONTAINER_START, _starts(running)))


def _used(cpu: Metric, memory: Metric, usages: Mapping[Labels, Usage]) -> Iterator[Told]:
    seconds = {
        labels: At(used.cpu_seconds, used.at / _SECOND)
        for labels, used in usages.items()
        if used.cpu_seconds is not None
    }
    yield told(cpu, seconds)
    bytes_ = {
        labels: At(used.memory_bytes, used.at / _SECOND)
        for labels, used in usages.items()
        if used.memory_bytes is not None
    }
    yield told(memory, bytes_)


def _by_pod(
    snapshot: UsageSnapshot, running: Mapping[PodUID, RuntimePod]
) -> Mapping[Labels, Usage]:
    return {
        (pod.name, pod.namespace): used
        for uid, used in snapshot.pods.items()
        if (pod := running.get(uid)) is not None
    }


def _by_container(
    snapshot: UsageSnapshot, running: Mapping[PodUID, RuntimePod]
) -> Mapping[Labels, Usage]:
    return {
        (name, pod.name, pod.namespace): used
        for uid, containers in snapshot.containers.items()
        if (pod := running.get(uid)) is not None
        for name, used in containers.items()
    }


def _starts(running: Mapping[PodUID, RuntimePod]) -> dict[Labels, float]:
    return {
        (c.name, pod.name, pod.namespace): c.started_at.unix_nanos() / _SECOND
        for pod in running.values()
        for c in pod.facts.containers
        if c.state is ContainerRunState.RUNNING and c.started_at
    }
