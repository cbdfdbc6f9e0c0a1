"""What is kept of the pods, nodes and leases of a cluster: as much as is shown of each.

A pod takes 20 KB once it is decoded, and its summary 2. What many pods say in the same words, as
those of a Deployment do, is kept once.
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
from podstatus.observe.status_view import NodeSummary
from podstatus.observe.summary.node import cpu_and_memory_requests, summarize_node
from podstatus.observe.summary.pod import PodSummary, summarize_pod

_MAX_SHARED_REQUESTS = 4096
"""Different ones that are kept once each."""


class SummaryMetadata(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which state of which object it is."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def from_metadata(cls, metadata: ObjectMeta) -> "SummaryMetadata":
        """That of an object."""
        return cls(
            namespace=sys.intern(metadata.namespace),
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )


class ClusterPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod."""

    metadata: SummaryMetadata
    summary: PodSummary
    requests: Mapping[str, Quantity] | None
    """What it takes of its node, cpu and memory; None if it has none, or has ended."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, without what is known of it elsewhere: pods, what they ask for, its lease."""

    metadata: SummaryMetadata
    summary: NodeSummary


class NodeLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The lease of a node."""

    metadata: SummaryMetadata
    renewed_at: int | None
    """When it was renewed last, in nanoseconds since the Unix epoch."""


def to_cluster_pod(pod: Pod) -> ClusterPod:
    """What is kept of a pod."""
    takes = bool(pod.spec.node_name) and not is_terminal_phase(pod.status.phase)
    return ClusterPod(
        metadata=SummaryMetadata.from_metadata(pod.metadata),
        summary=summarize_pod(pod),
        requests=_requests(pod) if takes else None,
    )


def to_cluster_node(node: Node) -> ClusterNode:
    """What is kept of a node."""
    return ClusterNode(
        metadata=SummaryMetadata.from_metadata(node.metadata),
        summary=summarize_node(node, pods=0, requested={}),
    )


def to_node_lease(lease: Lease) -> NodeLease:
    """What is kept of a lease."""
    renewed = lease.spec.renew_time
    return NodeLease(
        metadata=SummaryMetadata.from_metadata(lease.metadata),
        renewed_at=None if renewed is None else renewed.unix_nanos(),
    )


def _requests(pod: Pod) -> Mapping[str, Quantity]:
    try:
        return _shared_requests(tuple(cpu_and_memory_requests(pod.spec).items()))
    except QuantityError:
        # Too large to be added up: nobody grants it, and the pod is shown all the same.
        return {}


@lru_cache(maxsize=_MAX_SHARED_REQUESTS)
def _shared_requests(amounts: tuple[tuple[str, Quantity], ...]) -> Mapping[str, Quantity]:
    return dict(amounts)
