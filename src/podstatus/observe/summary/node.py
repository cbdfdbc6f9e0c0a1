"""Summarize a node, and add up the pods and resource requests of each node.

The totals of a node are updated as pods are added, moved and deleted. Its load is in `node_load`.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import structs

from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.node.decide.measured_usage import MeasuredUsage
from podstatus.observe.ports import NodeSummary, TaintSummary
from podstatus.observe.summary.node_load import (
    DeclaredResources,
    node_load,
    used_amounts,
    used_fractions,
)

_SUMMARY_RESOURCES = ("cpu", "memory")


def summarize_node(
    node: Node,
    *,
    pods: int,
    requested: Mapping[str, str],
    disk_full_in_seconds: float | None = None,
    lease_age_seconds: float | None = None,
) -> NodeSummary:
    """Return the summary of a node without its load."""
    status = node.status
    conditions = {condition.type: condition for condition in status.conditions or ()}
    ready = conditions.get("Ready")
    return NodeSummary(
        name=node.metadata.name,
        ready=ready is not None and ready.status == "True",
        reason="" if ready is None else ready.reason,
        message="" if ready is None else ready.message,
        conditions={type_: condition.status for type_, condition in conditions.items()},
        capacity=_format_quantities(status.capacity),
        allocatable=_format_quantities(status.allocatable),
        requested=requested,
        disk_full_in_seconds=disk_full_in_seconds,
        pods=pods,
        lease_age_seconds=lease_age_seconds,
        version=status.node_info.kubelet_version,
        labels=dict(node.metadata.labels or {}),
        unschedulable=node.spec.unschedulable,
        taints=tuple(TaintSummary(it.key, it.value, it.effect) for it in node.spec.taints or ()),
    )


def with_load(summary: NodeSummary, usage: MeasuredUsage, now: int) -> NodeSummary:
    """Return the summary with the load at `now`, of the clock of the samples."""
    declared = DeclaredResources(
        pods=summary.pods,
        requested=summary.requested,
        allocatable=summary.allocatable,
        capacity=summary.capacity,
    )
    load = node_load(usage, declared, now)
    return structs.replace(
        summary, load=load, used=used_amounts(load), used_fractions=used_fractions(load)
    )


def requested_resources(specs: Iterable[PodSpec]) -> dict[str, str]:
    """Return the total CPU and memory requests of pods."""
    return total_requests(map(cpu_and_memory_requests, specs))


def cpu_and_memory_requests(spec: PodSpec) -> dict[str, Quantity]:
    return {
        name: amount for name, amount in pod_requests(spec).items() if name in _SUMMARY_RESOURCES
    }


def total_requests(requests: Iterable[Mapping[str, Quantity]]) -> dict[str, str]:
    """Return the sum of requests, without those that are too large to add."""
    total: dict[str, Quantity] = {}
    for amounts in requests:
        for name, quantity in amounts.items():
            total[name] = _add_quantities(total[name], quantity) if name in total else quantity
    return _format_quantities(total)


def _add_quantities(one: Quantity, other: Quantity) -> Quantity:
    try:
        return one.plus(other)
    except QuantityError:
        # So far apart that no node has the larger one. The other pods must still be counted.
        return one if one.compare(other) < 0 else other


def _format_quantities(amounts: Mapping[str, Quantity] | None) -> dict[str, str]:
    return {name: quantity.canonical for name, quantity in (amounts or {}).items()}


class PodTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Number and total requests of the pods on a node."""

    pods: int = 0
    requested: Mapping[str, str] = {}


class PodTotalsByNode:
    """The totals of all nodes. Those of a node are recomputed after a change of one of its pods."""

    def __init__(self) -> None:
        self._nodes: dict[PodUID, str] = {}
        self._requests: dict[str, dict[PodUID, Mapping[str, Quantity]]] = {}
        self._totals: dict[str, PodTotals] = {}

    def put(self, uid: PodUID, node: str, requests: Mapping[str, Quantity] | None) -> None:
        """Set the requests of a pod; None if it is not bound to a node, or has terminated."""
        previous = self._requests.get(self._nodes.get(uid, ""), {}).get(uid)
        if requests is not None and self._nodes.get(uid) == node and previous == requests:
            return
        self.remove(uid)
        if requests is not None:
            self._nodes[uid] = node
            self._requests.setdefault(node, {})[uid] = requests
            self._totals.pop(node, None)

    def remove(self, uid: PodUID) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        pods = self._requests[node]
        del pods[uid]
        if not pods:
            del self._requests[node]
        self._totals.pop(node, None)

    def get(self, node: str) -> PodTotals:
        totals = self._totals.get(node)
        if totals is None:
            pods = self._requests.get(node, {})
            totals = self._totals[node] = PodTotals(
                pods=len(pods), requested=total_requests(pods.values())
            )
        return totals
