"""Translation of requests and limits into cgroup values (shares, quota, bytes) and back.

Upstream: MilliCPUToShares, MilliCPUToQuota and ResourceConfigForPod,
pkg/kubelet/cm/helpers_linux.go v1.36.4; calculateLinuxResources,
pkg/kubelet/kuberuntime/kuberuntime_container_linux.go v1.36.4.
"""

from collections.abc import Mapping

import msgspec
from msgspec import structs

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.pod_resources import pod_limits as limits_of_spec
from podstatus.kube.pod_resources import pod_requests as requests_of_spec
from podstatus.kube.qos import BEST_EFFORT, get_pod_qos
from podstatus.kube.scalars.quantity import Quantity

MIN_SHARES, MAX_SHARES = 2, 262_144
"""Range that the kernel accepts."""
CPU_PERIOD_MICROSECONDS = 100_000
"""CFS period: the default of both the kubelet and the kernel."""

_SHARES_PER_CPU = 1024
_MIN_QUOTA = 1000
"""The kernel rejects a quota below 1 ms."""
_ZERO = Quantity("0")
_KIBI = Quantity("1Ki")


class CgroupLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one cgroup; None means unlimited."""

    cpu_shares: int
    """CPU weight relative to sibling cgroups under contention."""
    cpu_quota: int | None = None
    """CPU time per period, microseconds."""
    memory_bytes: int | None = None

    @property
    def limited_resources(self) -> tuple[str, ...]:
        bounds = {"cpu": self.cpu_quota, "memory": self.memory_bytes}
        return tuple(name for name, bound in bounds.items() if bound is not None)


def container_limits(resources: ResourceRequirements) -> CgroupLimits:
    """Return a container's limits. Without a CPU request, its CPU limit counts as the request."""
    requests, limits = resources.requests or {}, resources.limits or {}
    return CgroupLimits(
        cpu_shares=milli_cpu_to_shares(
            _requested_milli_cpu(requests if "cpu" in requests else limits)
        ),
        cpu_quota=milli_cpu_to_quota(_requested_milli_cpu(limits)),
        memory_bytes=_memory_limit_bytes(limits),
    )


def pod_limits(pod: Pod) -> CgroupLimits:
    """Return a pod's limits: the sum over its containers, where every container has a limit."""
    if get_pod_qos(pod) == BEST_EFFORT:
        return CgroupLimits(cpu_shares=MIN_SHARES)
    limits = limits_of_spec(pod.spec)
    return CgroupLimits(
        cpu_shares=milli_cpu_to_shares(_requested_milli_cpu(requests_of_spec(pod.spec))),
        cpu_quota=milli_cpu_to_quota(_requested_milli_cpu(limits))
        if _all_have(pod.spec, "cpu")
        else None,
        memory_bytes=_memory_limit_bytes(limits) if _all_have(pod.spec, "memory") else None,
    )


def node_limits(cores: int) -> CgroupLimits:
    """Return the limits of all pods together: only CPU shares, for all `cores`."""
    return CgroupLimits(cpu_shares=milli_cpu_to_shares(cores * 1000))


def milli_cpu_to_shares(milli: int) -> int:
    """Convert milli-CPU to cgroup CPU shares."""
    return min(max(MIN_SHARES, milli * _SHARES_PER_CPU // 1000), MAX_SHARES)


def milli_cpu_to_quota(milli: int) -> int | None:
    """Convert milli-CPU to a CFS quota in microseconds per period; None for no limit."""
    return max(_MIN_QUOTA, milli * CPU_PERIOD_MICROSECONDS // 1000) if milli > 0 else None


def limits_to_facts(limits: CgroupLimits) -> ResourceFacts:
    """Return the resources that a runtime reports for these limits.

    Upstream: toKubeContainerResources, kuberuntime_container_linux.go v1.36.4.
    """
    return ResourceFacts(
        cpu_request=shares_to_cpu_request(limits.cpu_shares),
        cpu_limit=quota_to_cpu_limit(limits.cpu_quota, CPU_PERIOD_MICROSECONDS),
        memory_limit=bytes_to_memory_limit(limits.memory_bytes),
    )


def container_facts(resources: ResourceRequirements) -> ResourceFacts:
    """Return the resources in force for a container. The memory request is not enforced."""
    memory = (resources.requests or {}).get("memory")
    return structs.replace(limits_to_facts(container_limits(resources)), memory_request=memory)


def shares_to_cpu_request(shares: int) -> Quantity:
    """Convert shares to a CPU request, rounding up, since the reverse rounds down.

    Upstream: SharesToMilliCPU, helpers_linux.go v1.36.4.
    """
    return _milli_quantity(-(-shares * 1000 // _SHARES_PER_CPU))


def quota_to_cpu_limit(quota: int | None, period: int) -> Quantity | None:
    """Convert a CFS quota to a CPU limit.

    Upstream: QuotaToMilliCPU, helpers_linux.go v1.36.4.
    """
    return None if quota is None else _milli_quantity(quota * 1000 // period)


def bytes_to_memory_limit(count: int | None) -> Quantity | None:
    """Convert bytes to a memory limit in binary SI, as the kubelet formats it."""
    # A sum has the format of its first addend; this keeps 100000000 from becoming 100M.
    return None if count is None else _KIBI.plus(Quantity(str(count - 1024)))


def _all_have(spec: PodSpec, name: str) -> bool:
    own = (spec.resources.limits if spec.resources else None) or {}
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return _is_set(own, name) or all(_is_set(c.resources.limits, name) for c in containers)


def _is_set(limits: Mapping[str, Quantity] | None, name: str) -> bool:
    return (limits or {}).get(name, _ZERO).compare(_ZERO) != 0


def _requested_milli_cpu(resources: Mapping[str, Quantity]) -> int:
    return resources.get("cpu", _ZERO).milli_value


def _memory_limit_bytes(limits: Mapping[str, Quantity]) -> int | None:
    count = limits.get("memory", _ZERO).value
    return count if count > 0 else None


def _milli_quantity(milli: int) -> Quantity:
    return Quantity(Quantity(f"{milli}m").canonical)
