"""Capacity and allocatable resources of the node.

Upstream: CapacityFromMachineInfo, cadvisor/util.go; MachineInfo, nodestatus/setters.go;
GetNodeAllocatableReservation, cm/node_container_manager_linux.go v1.36.4.
"""

from collections.abc import Callable, Iterable, Mapping

from podstatus.kube.scalars.quantity import Quantity
from podstatus.node.decide.readings import MachineReading
from podstatus.node.settings import NodeSettings

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
REQUIRED_RESOURCES = (CPU, MEMORY, PODS, STORAGE)
"""A node that lacks one of these is not Ready."""
HUGE_PAGES_PREFIX = "hugepages-"

ResourceAmounts = Mapping[str, Quantity]

_NANO = 1_000_000_000
_MILLI = 1_000_000
_BINARY_RESOURCES = (MEMORY, STORAGE)
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

Reserve = Callable[[ResourceAmounts], ResourceAmounts]
"""Returns what is not allocatable of this capacity, such as the amounts of eviction thresholds."""


def reserve_nothing(_: ResourceAmounts) -> ResourceAmounts:
    return {}


def node_capacity(settings: NodeSettings, machine: MachineReading | None) -> dict[str, Quantity]:
    """Capacity by resource, from the reading and the settings; unknown ones are left out."""
    capacity: dict[str, Quantity] = {}
    cores = 0
    if machine is not None:
        cores = machine.cores
        capacity[CPU] = Quantity(str(cores))
        capacity[MEMORY] = binary_quantity(machine.memory_bytes)
        if machine.disk is not None and settings.local_storage_isolation:
            capacity[STORAGE] = binary_quantity(machine.disk.total_bytes)
    capacity[PODS] = Quantity(str(_pod_capacity(settings, cores)))
    return capacity | settings.capacity


def node_allocatable(
    capacity: ResourceAmounts, settings: NodeSettings, reserve: Reserve = reserve_nothing
) -> dict[str, Quantity]:
    """Capacity minus all reservations, at least 0."""
    reservations = (settings.kube_reserved, settings.system_reserved, reserve(capacity))
    return {
        name: _subtract(name, amount, sum_reserved(name, reservations))
        for name, amount in capacity.items()
    }


def sum_reserved(resource: str, reservations: Iterable[ResourceAmounts]) -> int:
    """The reserved amount of a resource, in units of 1e-9."""
    return sum(reserved[resource].nanos for reserved in reservations if resource in reserved)


def missing_capacity(capacity: ResourceAmounts, settings: NodeSettings) -> list[str]:
    """A problem text if the capacity of a required resource is unknown."""
    required = [n for n in REQUIRED_RESOURCES if n != STORAGE or settings.local_storage_isolation]
    missing = [name for name in required if name not in capacity]
    return [f"missing node capacity for resources: {', '.join(missing)}"] if missing else []


def binary_quantity(amount: int) -> Quantity:
    """Bytes in the largest binary unit without a fraction, as Go prints them."""
    unit = 0
    while amount and amount % 1024 == 0 and unit < len(_UNITS) - 1:
        amount //= 1024
        unit += 1
    return Quantity(f"{amount}{_UNITS[unit]}")


def _pod_capacity(settings: NodeSettings, cores: int) -> int:
    if settings.pods_per_core and cores:
        return min(settings.pods_per_core * cores, settings.max_pods)
    return settings.max_pods


def _subtract(name: str, amount: Quantity, reserved: int) -> Quantity:
    if not reserved:
        return amount
    left = max(0, amount.nanos - reserved)
    if name in _BINARY_RESOURCES:
        return binary_quantity(left // _NANO)
    if left % _NANO:
        return Quantity(f"{left // _MILLI}m")
    return Quantity(str(left // _NANO))
