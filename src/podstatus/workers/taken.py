"""What pods have of a node: how many they are, what they asked for, the ports of the host.

Cpu counts in thousandths, all else in whole units, as in upstream's messages.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.workers.host_ports import HostPort, host_ports

CPU, MEMORY, STORAGE = "cpu", "memory", "ephemeral-storage"
_NANO = 10**9
_MOST = 2**63 - 1


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What some pods have together."""

    pods: int = 0
    amounts: Mapping[str, int] = {}
    ports: tuple[HostPort, ...] = ()


def taken_by(specs: Iterable[PodSpec]) -> Taken:
    """What pods of these specs have; give their allocation, if they were granted something else."""
    amounts: Counter[str] = Counter()
    ports: list[HostPort] = []
    count = 0
    for spec in specs:
        amounts.update(counted(pod_requests(spec)))
        ports.extend(host_ports(spec))
        count += 1
    return Taken(pods=count, amounts=amounts, ports=tuple(ports))


def counted(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """The amounts of what nodes run out of; upstream does not look at any other name."""
    return {name: amount(name, q) for name, q in quantities.items() if _is_counted(name)}


def amount(resource: str, quantity: Quantity) -> int:
    """Rounded up. What no int64 holds is more than any node has, and stays that."""
    unit = _NANO // 1000 if resource == CPU else _NANO
    try:
        return min(_MOST, -(-quantity.nanos // unit))
    except QuantityError:
        return _MOST


def is_extended(resource: str) -> bool:
    """Whether a resource is neither Kubernetes' own nor a quota's.

    Upstream: IsExtendedResourceName, pkg/apis/core/v1/helper/helpers.go v1.36.4.
    """
    return (
        "/" in resource
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
    )


def _is_counted(resource: str) -> bool:
    return (
        resource in (CPU, MEMORY, STORAGE)
        or is_extended(resource)
        or "kubernetes.io/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )
