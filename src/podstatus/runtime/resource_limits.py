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

LEAST_SHARES, MOST_SHARES = 2, 262_144
"""The kernel takes no others."""
PERIOD = 100_000
"""Microseconds in which a quota may be used up: the kubelet's, and the kernel's own."""

_SHARES_OF_A_CORE = 1024
_LEAST_QUOTA = 1000
"""The kernel refuses less than a millisecond."""
_NANO = 10**9
_ZERO = Quantity("0")
_KIBI = Quantity("1Ki")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is to hold for everything in a cgroup together; None: no limit."""

    cpu_shares: int
    """Of the processors when there are not enough, against others beside it."""
    cpu_quota: int | None = None
    """Microseconds of processor time in each period."""
    memory_bytes: int | None = None

    @property
    def limited(self) -> tuple[str, ...]:
        """The resources that may be used only so far."""
        bounds = {"cpu": self.cpu_quota, "memory": self.memory_bytes}
        return tuple(name for name, bound in bounds.items() if bound is not None)


def container_limits(resources: ResourceRequirements) -> Limits:
    """Of a container. If it asks for no cpu, it counts as asking for its limit."""
    requests, limits = resources.requests or {}, resources.limits or {}
    return Limits(
        cpu_shares=shares_of(_milli(requests if "cpu" in requests else limits)),
        cpu_quota=quota_of(_milli(limits)),
        memory_bytes=_bytes(limits),
    )


def pod_limits(pod: Pod) -> Limits:
    """Of a pod as a whole: what its containers add up to, if each of them is limited."""
    if get_pod_qos(pod) == BEST_EFFORT:
        return Limits(cpu_shares=LEAST_SHARES)
    limits = limits_of_spec(pod.spec)
    return Limits(
        cpu_shares=shares_of(_milli(requests_of_spec(pod.spec))),
        cpu_quota=quota_of(_milli(limits)) if _all_have(pod.spec, "cpu") else None,
        memory_bytes=_bytes(limits) if _all_have(pod.spec, "memory") else None,
    )


def machine_limits(cores: int) -> Limits:
    """Of all pods together: none, but that they count as much as there are processors."""
    return Limits(cpu_shares=shares_of(cores * 1000))


def shares_of(milli: int) -> int:
    """Thousandths of a processor as shares."""
    return min(max(LEAST_SHARES, milli * _SHARES_OF_A_CORE // 1000), MOST_SHARES)


def quota_of(milli: int) -> int | None:
    """Thousandths of a processor as microseconds in a period; None for no limit."""
    return max(_LEAST_QUOTA, milli * PERIOD // 1000) if milli > 0 else None


def facts_of(limits: Limits) -> ResourceFacts:
    """What a runtime reports that was told these.

    Upstream: toKubeContainerResources, kuberuntime_container_linux.go v1.36.4.
    """
    return ResourceFacts(
        cpu_request=cpu_request_of(limits.cpu_shares),
        cpu_limit=cpu_limit_of(limits.cpu_quota, PERIOD),
        memory_limit=memory_limit_of(limits.memory_bytes),
    )


def container_facts(resources: ResourceRequirements) -> ResourceFacts:
    """What holds for a container that was given these; its request for memory binds nobody."""
    memory = (resources.requests or {}).get("memory")
    return structs.replace(facts_of(container_limits(resources)), memory_request=memory)


def cpu_request_of(shares: int) -> Quantity:
    """Shares as a request; a thousandth is rounded up, as it was rounded down before.

    Upstream: SharesToMilliCPU, helpers_linux.go v1.36.4.
    """
    return _milli_quantity(-(-shares * 1000 // _SHARES_OF_A_CORE))


def cpu_limit_of(quota: int | None, period: int) -> Quantity | None:
    """A quota as a limit. Upstream: QuotaToMilliCPU, helpers_linux.go v1.36.4."""
    return None if quota is None else _milli_quantity(quota * 1000 // period)


def memory_limit_of(count: int | None) -> Quantity | None:
    """So many bytes as a limit, in powers of two as the kubelet spells it."""
    # A sum has the format of its first part: this is how 100000000 does not become 100M.
    return None if count is None else _KIBI.plus(Quantity(str(count - 1024)))


def _all_have(spec: PodSpec, name: str) -> bool:
    own = (spec.resources.limits if spec.resources else None) or {}
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return _is_set(own, name) or all(_is_set(c.resources.limits, name) for c in containers)


def _is_set(limits: Mapping[str, Quantity] | None, name: str) -> bool:
    return (limits or {}).get(name, _ZERO).compare(_ZERO) != 0


def _milli(resources: Mapping[str, Quantity]) -> int:
    return resources.get("cpu", _ZERO).milli_value


def _bytes(limits: Mapping[str, Quantity]) -> int | None:
    count = -(-limits.get("memory", _ZERO).nanos // _NANO)
    return count if count > 0 else None


def _milli_quantity(milli: int) -> Quantity:
    return Quantity(Quantity(f"{milli}m").canonical)
