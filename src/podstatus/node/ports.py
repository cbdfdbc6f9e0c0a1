"""What the node needs from others. Any object with these methods will do."""

from collections.abc import Sequence
from typing import Protocol

from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node


class NodeApi(Protocol):
    """The API server's nodes and leases. Failures are the errors of `podstatus.kube.errors`."""

    async def get_node(self, name: str) -> Node:
        """Read a node."""

    async def create_node(self, node: Node) -> Node:
        """Create a node, with its status; ConflictError if there is one of that name."""

    async def patch_node(self, name: str, patch: bytes) -> Node:
        """Apply a strategic merge patch; the node afterwards."""

    async def patch_node_status(self, name: str, patch: bytes) -> Node:
        """Apply a strategic merge patch to the `status` subresource; the node afterwards."""

    async def get_lease(self, namespace: str, name: str) -> Lease:
        """Read a lease."""

    async def create_lease(self, lease: Lease) -> Lease:
        """Create a lease; ConflictError if there is one of that name."""

    async def replace_lease(self, lease: Lease) -> Lease:
        """Put a lease in place of the one with its resource version, else ConflictError."""


class NodeEvents(Protocol):
    """Who tells users what happened to our node. Must not block."""

    def normal(self, reason: str, message: str) -> None:
        """Record an event of type Normal about the node."""

    def warn(self, reason: str, message: str) -> None:
        """Record an event of type Warning about the node."""


class Health(Protocol):
    """Who knows whether the node can do its work. Must not block."""

    def problems(self) -> Sequence[str]:
        """Why the node is not Ready; nothing if it is."""
