"""Summaries of the pods, nodes and leases of a cluster: as much as is shown of each.

A decoded pod takes 20 KB, its summary 2. Values that many pods share, as those of a Deployment do,
are stored once.
"""

import sys
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.node import cpu_and_memory_requests, summarize_node
from podstatus.observe.summary.pod import PodSummary, summarize_pod

_MAX_SHARED_REQUESTS = 4096
"""Distinct resource requests that are shared."""


class SummaryMetadata(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Identity and resource version of the summarized object."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def from_metadata(cls, metadata: ObjectMeta) -> "SummaryMetadata":
        return cls(
            namespace=sys.intern(metadata.namespace),
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )


class ClusterPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of the cluster: its summary and its resource requests."""

    metadata: SummaryMetadata
    summary: PodSummary
    requests: Mapping[str, Quantity] | None
    """CPU and memory requests; None if it is not bound to a node, or has terminated."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, without its pods, their requests and its lease."""

    metadata: SummaryMetadata
    summary: NodeSummary


class NodeLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: SummaryMetadata
    renewed_at: int | None
    """Last renewal, in nanoseconds since the Unix epoch."""


def to_cluster_pod(pod: Pod) -> ClusterPod:
    uses_node = bool(pod.spec.node_name) and not is_terminal_phase(pod.status.phase)
    return ClusterPod(
        metadata=SummaryMetadata.from_metadata(pod.metadata),
        summary=summarize_pod(pod),
        requests=_requests(pod) if uses_node else None,
    )


def to_cluster_node(node: Node) -> ClusterNode:
    return ClusterNode(
        metadata=SummaryMetadata.from_metadata(node.metadata),
        summary=summarize_node(node, pods=0, requested={}),
    )


def to_node_lease(lease: Lease) -> NodeLease:
    renewed = lease.spec.renew_time
    return NodeLease(
        metadata=SummaryMetadata.from_metadata(lease.metadata),
        renewed_at=None if renewed is None else renewed.unix_nanos(),
    )


def _requests(pod: Pod) -> Mapping[str, Quantity]:
    try:
        return _shared_requests(tuple(cpu_and_memory_requests(pod.spec).items()))
    except QuantityError:
        # Too large to add up: no node can satisfy it, but the pod is still shown.
        return {}


@lru_cache(maxsize=_MAX_SHARED_REQUESTS)
def _shared_requests(amounts: tuple[tuple[str, Quantity], ...]) -> Mapping[str, Quantity]:
    return dict(amounts)
