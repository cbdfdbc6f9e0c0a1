"""Resource usage of node and pods as the kubelet's `/stats/summary`.

What is not measured is omitted; docs/reference/http/stats-summary.md lists what never is.

Upstream: Summary, kubelet/pkg/apis/stats/v1alpha1/types.go v0.36.4; handleSummary,
pkg/kubelet/server/stats/handler.go v1.36.4.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.objects.usage import ContainerDiskUsage, DiskUsage, PodDiskUsage, Usage
from podstatus.node.decide.readings import DiskReading, UsageSnapshot
from podstatus.runtime.port import RuntimePod
from podstatus.web.errors import unavailable
from podstatus.web.kubelet import stats_blocks as blocks
from podstatus.web.ports import UsageProvider
from podstatus.web.query_parameters import Query

_UNKNOWN = DiskUsage(is_complete=False)


def stats_summary(
    node: str, machine: UsageProvider, running: Sequence[RuntimePod], query: Query
) -> bytes:
    """Encode the summary, with `only_cpu_and_memory=true` these two only. Raises HttpError."""
    snapshot = machine.snapshot
    if snapshot is None:
        raise unavailable("usage has not been measured yet; try again in a few seconds")
    only_some = list(query.get("only_cpu_and_memory", ())) == ["true"]
    pods = [_pod(pod, snapshot, only_some=only_some) for pod in running if _running(pod)]
    return msgspec.json.encode({"node": _node(node, snapshot, only_some=only_some), "pods": pods})


def _node(name: str, snapshot: UsageSnapshot, *, only_some: bool) -> dict[str, Any]:
    machine, at = snapshot.machine, snapshot.at
    booted = machine.booted_at
    systems = _system_containers(snapshot, only_some=only_some)
    stats = {
        "nodeName": name,
        **({"systemContainers": systems} if systems else {}),
        "startTime": blocks.rfc3339(booted) if booted else None,
        **_used(snapshot.node, only_some=only_some),
    }
    if only_some:
        return stats
    return stats | blocks.without_none(
        network=blocks.network(machine.interfaces, at),
        fs=machine.disk and blocks.filesystem(machine.disk, at),
        runtime=machine.disk and _runtime_filesystems(machine.disk, snapshot),
        rlimit=blocks.without_none(
            time=blocks.rfc3339(at), maxpid=machine.max_pids, curproc=machine.pids
        ),
    )


def _runtime_filesystems(disk: DiskReading, snapshot: UsageSnapshot) -> dict[str, Any]:
    """The filesystem of images and of containers is that of the node; there are no images."""
    layers = [it.rootfs for pod in snapshot.disks.values() for it in pod.containers.values()]
    written = sum(layers, DiskUsage()) if snapshot.disks else _UNKNOWN
    return {
        "imageFs": blocks.disk_share(disk, _UNKNOWN, snapshot.at),
        "containerFs": blocks.disk_share(disk, written, snapshot.at),
    }


def _system_containers(snapshot: UsageSnapshot, *, only_some: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "startTime": blocks.rfc3339(system.started_at),
            **_used(system.usage, only_some=only_some),
        }
        for name, system in snapshot.system.items()
    ]


def _pod(pod: RuntimePod, snapshot: UsageSnapshot, *, only_some: bool) -> dict[str, Any]:
    running, used = _running(pod), snapshot.pods.get(pod.uid)
    stats = {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": min(it.started_at for it in running).wire,
        "containers": [_container(it, pod, snapshot, only_some=only_some) for it in running],
        **_used(used, only_some=only_some),
    }
    if only_some:
        return stats
    disk = snapshot.disks.get(pod.uid)
    processes = used and used.processes
    return stats | blocks.without_none(
        volume=disk and _volumes(disk, snapshot.machine.disk),
        process_stats=None if processes is None else {"process_count": processes},
        **{"ephemeral-storage": _ephemeral_storage(used, disk, snapshot.machine.disk)},
    )


def _container(
    facts: ContainerFacts, pod: RuntimePod, snapshot: UsageSnapshot, *, only_some: bool
) -> dict[str, Any]:
    used = snapshot.containers.get(pod.uid, {}).get(facts.name)
    stats = {
        "name": facts.name,
        "startTime": facts.started_at.wire,
        **_used(used, only_some=only_some),
    }
    pod_disk = snapshot.disks.get(pod.uid)
    disk = None if pod_disk is None else pod_disk.containers.get(facts.name)
    if only_some or pod_disk is None or disk is None:
        return stats
    return stats | _container_filesystems(disk, snapshot.machine.disk, pod_disk.at)


def _container_filesystems(
    disk: ContainerDiskUsage, filesystem: DiskReading | None, at: int
) -> dict[str, Any]:
    return {
        "rootfs": blocks.disk_share(filesystem, disk.rootfs, at),
        "logs": blocks.disk_share(filesystem, disk.logs, at),
    }


def _volumes(disk: PodDiskUsage, filesystem: DiskReading | None) -> list[dict[str, Any]] | None:
    return [
        {"name": name, **blocks.disk_share(filesystem, used, disk.at)}
        for name, used in disk.volumes.items()
    ] or None


def _ephemeral_storage(
    used: Usage | None, disk: PodDiskUsage | None, filesystem: DiskReading | None
) -> Mapping[str, Any] | None:
    """Containers and volumes together; without them, what the runtime says of the whole pod."""
    if disk is not None:
        parts = [part for it in disk.containers.values() for part in (it.rootfs, it.logs)]
        total = sum((*parts, *disk.volumes.values()), DiskUsage())
        return blocks.disk_share(filesystem, total, disk.at)
    if used is None or used.disk_bytes is None:
        return None
    block = blocks.disk_share(filesystem, _UNKNOWN, used.at)
    return block | {"usedBytes": used.disk_bytes}


def _used(used: Usage | None, *, only_some: bool) -> dict[str, Any]:
    """What is known of CPU, memory, swap and I/O."""
    if used is None:
        return {}
    return blocks.without_none(
        cpu=blocks.cpu(used),
        memory=blocks.memory(used),
        io=None if only_some else blocks.io(used),
        swap=blocks.swap(used),
    )


def _running(pod: RuntimePod) -> list[ContainerFacts]:
    return [it for it in pod.facts.containers if it.state is ContainerRunState.RUNNING]
