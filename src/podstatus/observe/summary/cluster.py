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
from podstatus.observe.summary.node import requests, summarize_node
from podstatus.observe.summary.pod import PodSummary, summarize

_MOST_REQUESTS = 4096
"""Different ones that are kept once each."""


class Identity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which state of which object it is."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def of(cls, metadata: ObjectMeta) -> "Identity":
        """That of an object."""
        return cls(
            namespace=sys.intern(metadata.namespace),
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod."""

    metadata: Identity
    summary: PodSummary
    requests: Mapping[str, Quantity] | None
    """What it takes of its node, cpu and memory; None if it has none, or has ended."""


class SeenNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, without what is known of it elsewhere: pods, what they ask for, its lease."""

    metadata: Identity
    summary: NodeSummary


class SeenLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The lease of a node."""

    metadata: Identity
    renewed: int | None
    """When it was renewed last, in nanoseconds since the Unix epoch."""


def see_pod(pod: Pod) -> SeenPod:
    """What is kept of a pod."""
    takes = bool(pod.spec.node_name) and not is_terminal_phase(pod.status.phase)
    return SeenPod(
        metadata=Identity.of(pod.metadata),
        summary=summarize(pod),
        requests=_requests(pod) if takes else None,
    )


def see_node(node: Node) -> SeenNode:
    """What is kept of a node."""
    return SeenNode(
        metadata=Identity.of(node.metadata), summary=summarize_node(node, pods=0, requested={})
    )


def see_lease(lease: Lease) -> SeenLease:
    """What is kept of a lease."""
    renewed = lease.spec.renew_time
    return SeenLease(
        metadata=Identity.of(lease.metadata),
        renewed=None if renewed is None else renewed.unix_nanos(),
    )


def _requests(pod: Pod) -> Mapping[str, Quantity]:
    try:
        return _kept_once(tuple(requests(pod.spec).items()))
    except QuantityError:
        # Too large to be added up: nobody grants it, and the pod is shown all the same.
        return {}


@lru_cache(maxsize=_MOST_REQUESTS)
def _kept_once(amounts: tuple[tuple[str, Quantity], ...]) -> Mapping[str, Quantity]:
    return dict(amounts)
