"""The load of a node: usage, requests, what is allocatable, and their ratios, for each resource.

One definition of a fraction for all readers: the amount divided by what is allocatable, as
`kubectl top node` does. The Node has no allocatable for the filesystem of the root directory and
for process IDs; of these it is the capacity, that of a filesystem without the space reserved for
root, as df does.
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.node.decide.measured_usage import (
    CPU,
    DISK,
    INODES,
    MEMORY,
    PIDS,
    PODS,
    WINDOWS,
    MeasuredUsage,
    MovingAverage,
    NodeUsageSample,
)

_SECOND = 1_000_000_000
_OF_NODE = (CPU, MEMORY, PODS)
"""Resources with a declared allocatable amount."""
_NO_SAMPLE = NodeUsageSample(at=0, used={})


class LoadAverage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Exponentially weighted moving average of the usage of a resource."""

    used: float
    used_fraction: float | None = None
    """Left out: it is not known how much is allocatable."""
    covered_seconds: float
    """The measured part of the window; less than the window after a start or a gap."""


class ResourceLoad(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The load of one resource: CPU in cores, memory and disk in bytes; left out: unknown."""

    used: float | None = None
    requested: float | None = None
    """Sum of the pods' requests; only of CPU and memory."""
    allocatable: float | None = None
    """For pods; the capacity, where the Node declares nothing else."""
    used_fraction: float | None = None
    """Of allocatable; it may exceed 1, since not all usage is by pods."""
    requested_fraction: float | None = None
    """Of allocatable."""
    averages: Mapping[str, LoadAverage] = {}
    """Of the usage, over `1m`, `5m` and `15m`; those without a measurement are left out."""

    def complete_average(self, window: str) -> LoadAverage | None:
        """Return an average by its name if its whole window was measured."""
        average = self.averages.get(window)
        return average if average and average.covered_seconds >= WINDOWS[window] else None


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The load of a node by resource."""

    cpu: ResourceLoad = ResourceLoad()
    memory: ResourceLoad = ResourceLoad()
    disk: ResourceLoad = ResourceLoad()
    """The filesystem of the root directory."""
    inodes: ResourceLoad = ResourceLoad()
    """Of the same filesystem."""
    pids: ResourceLoad = ResourceLoad()
    """Processes and threads."""
    pods: ResourceLoad = ResourceLoad()
    """Pods that have not terminated."""
    age_seconds: float | None = None
    """Since the last measurement; left out: there was none."""

    def by_resource(self) -> dict[str, ResourceLoad]:
        """Return the load of each resource, by name."""
        return {name: getattr(self, name) for name in (CPU, MEMORY, DISK, INODES, PIDS, PODS)}


class DeclaredResources(msgspec.Struct, frozen=True, kw_only=True):
    """What is declared of a node, as quantities by resource."""

    pods: int = 0
    """Number of pods that have not terminated."""
    requested: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}


def node_load(usage: MeasuredUsage, declared: DeclaredResources, now: int) -> NodeLoad:
    """Return the load of a node at `now`, of the clock of the samples.

    In a gap, the current usage is unknown, and the averages cover less and less.
    """
    sample = usage.newest(now) or _NO_SAMPLE
    used = {**sample.used, PODS: float(declared.pods)}
    capacity = (usage.sample or _NO_SAMPLE).capacity

    def load(resource: str) -> ResourceLoad:
        return _resource_load(
            used.get(resource),
            _amount(declared.requested, resource),
            _allocatable(resource, declared, capacity),
            usage.averages_at(resource, now),
        )

    return NodeLoad(
        cpu=load(CPU),
        memory=load(MEMORY),
        disk=load(DISK),
        inodes=load(INODES),
        pids=load(PIDS),
        pods=load(PODS),
        age_seconds=None if usage.sample is None else max(0, now - usage.sample.at) / _SECOND,
    )


def used_amounts(load: NodeLoad) -> dict[str, float]:
    """Return the usage by resource; unknown ones are missing."""
    return {name: it.used for name, it in load.by_resource().items() if it.used is not None}


def used_fractions(load: NodeLoad) -> dict[str, float]:
    """Return the used fraction of each resource; unknown ones are missing."""
    return {
        name: it.used_fraction
        for name, it in load.by_resource().items()
        if it.used_fraction is not None
    }


def _resource_load(
    used: float | None,
    requested: float | None,
    allocatable: float | None,
    averages: Mapping[str, MovingAverage],
) -> ResourceLoad:
    return ResourceLoad(
        used=used,
        requested=requested,
        allocatable=allocatable,
        used_fraction=_fraction(used, allocatable),
        requested_fraction=_fraction(requested, allocatable),
        averages={
            name: LoadAverage(
                used=amount,
                used_fraction=_fraction(amount, allocatable),
                covered_seconds=average.covered_seconds,
            )
            for name, average in averages.items()
            if (amount := average.amount) is not None
        },
    )


def _allocatable(
    resource: str, declared: DeclaredResources, measured: Mapping[str, float]
) -> float | None:
    amounts = (declared.allocatable, declared.capacity) if resource in _OF_NODE else ()
    of_node = (_amount(quantities, resource) for quantities in amounts)
    return next((it for it in of_node if it is not None), measured.get(resource))


def _amount(quantities: Mapping[str, str], resource: str) -> float | None:
    text = quantities.get(resource)
    return None if text is None else _parse_quantity(text)


@lru_cache(maxsize=4096)
def _parse_quantity(text: str) -> float | None:
    """Of thousands of nodes, the same few amounts are read again and again."""
    try:
        return Quantity(text).nanos / _SECOND
    except (QuantityError, OverflowError):
        return None


def _fraction(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole is not None and whole > 0 else None
