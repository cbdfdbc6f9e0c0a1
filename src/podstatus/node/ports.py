"""Ports of the node services: API, events, health checks."""

from collections.abc import Callable, Iterable
from typing import Protocol

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node


class NodeApi(Protocol):
    """Nodes and leases of the API server. Raises the errors of `podstatus.kube.api_errors`."""

    async def get_node(self, name: str) -> Node:
        """Read a node. Raises GoneError if there is none."""

    async def create_node(self, node: Node) -> Node:
        """Create a node with its status. Raises ConflictError if the name exists."""

    async def patch_node(self, name: str, patch: bytes) -> Node:
        """Apply a strategic merge patch. Return the patched node."""

    async def patch_node_status(self, name: str, patch: bytes) -> Node:
        """Apply a strategic merge patch to the `status` subresource. Return the patched node."""

    async def get_lease(self, namespace: str, name: str) -> Lease:
        """Read a lease. Raises GoneError if there is none."""

    async def create_lease(self, lease: Lease) -> Lease:
        """Create a lease. Raises ConflictError if the name exists."""

    async def replace_lease(self, lease: Lease) -> Lease:
        """Update a lease. Raises ConflictError if its resource version is outdated."""


class NodeEvents(Protocol):
    """Records events about this node. Must not block."""

    def normal(self, reason: str, message: str) -> None:
        """Record an event of type Normal about the node."""

    def warn(self, reason: str, message: str) -> None:
        """Record an event of type Warning about the node."""


NodeHealthCheck = Callable[[], str | None]
"""Returns a problem or None. Called at every status update: must not block."""


def node_problems(checks: Iterable[NodeHealthCheck], heartbeats: Heartbeats) -> tuple[str, ...]:
    """Why the node is not Ready: failed checks in their order, then stalled vital services.

    Upstream: runtimeErrors, runtime.go v1.36.4.
    """
    problems = [problem for check in checks if (problem := check())]
    stalled = (service for service in heartbeats.stalled() if service.is_vital)
    return *problems, *(f"{service.name} is not healthy: {service}" for service in stalled)
