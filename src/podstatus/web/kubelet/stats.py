"""Resource usage of node and pods as the kubelet's `/stats/summary`.

Fields that are not measured are omitted, as upstream does: network, swap, pressure.

Upstream: Summary, kubelet/pkg/apis/stats/v1alpha1/types.go v0.36.4; handleSummary,
pkg/kubelet/server/stats/handler.go v1.36.4.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.objects.usage import Usage
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.readings import MachineReading, UsageSnapshot
from podstatus.runtime.port import RuntimePod
from podstatus.web.errors import unavailable
from podstatus.web.ports import UsageProvider
from podstatus.web.query_parameters import Query

_NANOS = 1_000_000_000


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
    stats = {
        "nodeName": name,
        "startTime": _time(machine.booted_at),
        **_used(snapshot.node, available=machine.memory_available_bytes),
    }
    if only_some:
        return stats
    filesystem = _filesystem(machine, at)
    return stats | _without_none(
        fs=filesystem,
        runtime=filesystem and {"imageFs": filesystem, "containerFs": filesystem},
        rlimit=_without_none(time=_time(at), maxpid=machine.max_pids, curproc=machine.pids),
    )


def _filesystem(machine: MachineReading, at: int) -> dict[str, Any] | None:
    disk = machine.disk
    if disk is None:
        return None
    counted = disk.inodes > 0
    return _without_none(
        time=_time(at),
        availableBytes=disk.available_bytes,
        capacityBytes=disk.total_bytes,
        usedBytes=disk.used_bytes,
        inodesFree=disk.inodes_free if counted else None,
        inodes=disk.inodes if counted else None,
        inodesUsed=disk.inodes - disk.inodes_free if counted else None,
    )


def _pod(pod: RuntimePod, snapshot: UsageSnapshot, *, only_some: bool) -> dict[str, Any]:
    running, used = _running(pod), snapshot.pods.get(pod.uid)
    containers = snapshot.containers.get(pod.uid, {})
    stats = {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": min(it.started_at for it in running).wire,
        "containers": [
            {"name": it.name, "startTime": it.started_at.wire, **_used(containers.get(it.name))}
            for it in running
        ],
        **_used(used),
    }
    if only_some or used is None:
        return stats
    disk, processes = used.disk_bytes, used.pids
    return stats | _without_none(
        **{
            "ephemeral-storage": None
            if disk is None
            else {"time": _time(used.at), "usedBytes": disk},
            "process_stats": None if processes is None else {"process_count": processes},
        }
    )


def _used(used: Usage | None, *, available: int | None = None) -> dict[str, Any]:
    """CPU and memory usage, as far as it is known."""
    if used is None:
        return {}
    at = _time(used.at)
    return {
        "cpu": _without_none(
            time=at,
            usageNanoCores=_whole(used.cpu_cores),
            usageCoreNanoSeconds=_whole(used.cpu_seconds),
        ),
        "memory": _without_none(
            time=at, availableBytes=available, workingSetBytes=used.memory_bytes
        ),
    }


def _running(pod: RuntimePod) -> list[ContainerFacts]:
    return [it for it in pod.facts.containers if it.state is ContainerRunState.RUNNING]


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _whole(amount: float | None) -> int | None:
    return None if amount is None else round(amount * _NANOS)


def _time(at: int | None) -> str | None:
    return Time.from_unix_nanos(at).wire if at else None
