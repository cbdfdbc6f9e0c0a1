"""What the node needs from others: API, events, health. Any object with these methods will do.

`NodeHealth` is the health of the agent's own checks and heartbeats: why the node is not Ready.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from podstatus.base.heartbeat import Heartbeats
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


class HealthReporter(Protocol):
    """Who knows whether the node can do its work. Must not block."""

    def problems(self) -> Sequence[str]:
        """Why the node is not Ready; nothing if it is."""


NodeHealthCheck = Callable[[], str | None]
"""What is wrong, or None. Called with every computation of the status: must not block."""


class NodeHealth:
    """The problems that others have, and the vital services that are not heard of any more."""

    def __init__(self, *checks: NodeHealthCheck, heartbeats: Heartbeats | None = None) -> None:
        self._checks = checks
        self._heartbeats = heartbeats

    def problems(self) -> tuple[str, ...]:
        """All of them, in the order of the checks; services that stand still come last.

        Upstream: runtimeErrors, runtime.go v1.36.4.
        """
        told = [problem for check in self._checks if (problem := check())]
        stalled = [] if self._heartbeats is None else self._heartbeats.stalled()
        vital = (found for found in stalled if found.is_vital)
        return *told, *(f"{found.name} is not healthy: {found}" for found in vital)
