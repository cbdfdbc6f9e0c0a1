"""What a cgroup has to be told so that requests and limits hold, in the kernel's terms.

Upstream: MilliCPUToShares, MilliCPUToQuota and ResourceConfigForPod, pkg/kubelet/cm/
helpers_linux.go v1.36.4; calculateLinuxResources, pkg/kubelet/kuberuntime/
kuberuntime_container_linux.go v1.36.4.
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
"""The kernel takes no others."""
CPU_PERIOD_MICROSECONDS = 100_000
"""Microseconds in which a quota may be used up: the kubelet's, and the kernel's own."""

_SHARES_PER_CPU = 1024
_MIN_QUOTA = 1000
"""The kernel refuses less than a millisecond."""
_NANO = 10**9
_ZERO = Quantity("0")
_KIBI = Quantity("1Ki")


class CgroupLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What is to hold for everything in a cgroup together; None: no limit."""

    cpu_shares: int
    """Of the processors when there are not enough, against others beside it."""
    cpu_quota: int | None = None
    """Microseconds of processor time in each period."""
    memory_bytes: int | None = None

    @property
    def limited_resources(self) -> tuple[str, ...]:
        """The resources that may be used only so far."""
        bounds = {"cpu": self.cpu_quota, "memory": self.memory_bytes}
        return tuple(name for name, bound in bounds.items() if bound is not None)


def container_limits(resources: ResourceRequirements) -> CgroupLimits:
    """Of a container. If it asks for no cpu, it counts as asking for its limit."""
    requests, limits = resources.requests or {}, resources.limits or {}
    return CgroupLimits(
        cpu_shares=milli_cpu_to_shares(
            _requested_milli_cpu(requests if "cpu" in requests else limits)
        ),
        cpu_quota=milli_cpu_to_quota(_requested_milli_cpu(limits)),
        memory_bytes=_memory_limit_bytes(limits),
    )


def pod_limits(pod: Pod) -> CgroupLimits:
    """Of a pod as a whole: what its containers add up to, if each of them is limited."""
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
    """Of all pods together: none, but that they count as much as there are processors."""
    return CgroupLimits(cpu_shares=milli_cpu_to_shares(cores * 1000))


def milli_cpu_to_shares(milli: int) -> int:
    """Thousandths of a processor as shares."""
    return min(max(MIN_SHARES, milli * _SHARES_PER_CPU // 1000), MAX_SHARES)


def milli_cpu_to_quota(milli: int) -> int | None:
    """Thousandths of a processor as microseconds in a period; None for no limit."""
    return max(_MIN_QUOTA, milli * CPU_PERIOD_MICROSECONDS // 1000) if milli > 0 else None


def limits_to_facts(limits: CgroupLimits) -> ResourceFacts:
    """What a runtime reports that was told these.

    Upstream: toKubeContainerResources, kuberuntime_container_linux.go v1.36.4.
    """
    return ResourceFacts(
        cpu_request=shares_to_cpu_request(limits.cpu_shares),
        cpu_limit=quota_to_cpu_limit(limits.cpu_quota, CPU_PERIOD_MICROSECONDS),
        memory_limit=bytes_to_memory_limit(limits.memory_bytes),
    )


def container_facts(resources: ResourceRequirements) -> ResourceFacts:
    """What holds for a container that was given these; its request for memory binds nobody."""
    memory = (resources.requests or {}).get("memory")
    return structs.replace(limits_to_facts(container_limits(resources)), memory_request=memory)


def shares_to_cpu_request(shares: int) -> Quantity:
    """Shares as a request; a thousandth is rounded up, as it was rounded down before.

    Upstream: SharesToMilliCPU, helpers_linux.go v1.36.4.
    """
    return _milli_quantity(-(-shares * 1000 // _SHARES_PER_CPU))


def quota_to_cpu_limit(quota: int | None, period: int) -> Quantity | None:
    """A quota as a limit. Upstream: QuotaToMilliCPU, helpers_linux.go v1.36.4."""
    return None if quota is None else _milli_quantity(quota * 1000 // period)


def bytes_to_memory_limit(count: int | None) -> Quantity | None:
    """So many bytes as a limit, in powers of two as the kubelet spells it."""
    # A sum has the format of its first part: this is how 100000000 does not become 100M.
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
    count = -(-limits.get("memory", _ZERO).nanos // _NANO)
    return count if count > 0 else None


def _milli_quantity(milli: int) -> Quantity:
    return Quantity(Quantity(f"{milli}m").canonical)
