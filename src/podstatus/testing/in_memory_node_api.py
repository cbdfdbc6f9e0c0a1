"""An in-memory API for nodes and leases, with real patches and errors."""

import asyncio
import itertools
from collections import defaultdict, deque
from typing import Any

import msgspec
from msgspec import structs

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.api_errors import api_error
from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node
from podstatus.kube.patch import apply_patch
from podstatus.kube.patch.schema import NODE

VERBS = (
    "get_node",
    "create_node",
    "patch_node",
    "patch_node_status",
    "get_lease",
    "create_lease",
    "replace_lease",
)


class NodeCall(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call of the API."""

    verb: str
    name: str
    code: int | None = None
    """The HTTP status of a failed call, None otherwise."""
    patch: bytes | None = None


class InMemoryNodeApi:
    """Nodes by name, and leases of one namespace; satisfies `podstatus.node.ports.NodeApi`."""

    def __init__(self) -> None:
        self.calls: list[NodeCall] = []
        self.nodes: dict[str, Node] = {}
        self.leases: dict[str, Lease] = {}
        self._failures: defaultdict[str, deque[int]] = defaultdict(deque)
        self._numbers = itertools.count(1)
        self._outage_code = 0
        self._hanging = False

    # Calls of the node agent

    async def get_node(self, name: str) -> Node:
        """Return a node. Raises ApiError (404)."""
        await self._record_call("get_node", name, exists=name in self.nodes)
        return self.nodes[name]

    async def create_node(self, node: Node) -> Node:
        """Create a node. Raises ApiError (409)."""
        name = node.metadata.name
        await self._record_call("create_node", name, exists=name not in self.nodes, otherwise=409)
        return self.put_node(node)

    async def patch_node(self, name: str, patch: bytes) -> Node:
        """Apply a strategic merge patch; return the patched node. Raises ApiError."""
        return await self._patch("patch_node", name, patch)

    async def patch_node_status(self, name: str, patch: bytes) -> Node:
        """Apply a strategic merge patch; return the patched node. Raises ApiError."""
        return await self._patch("patch_node_status", name, patch)

    async def get_lease(self, namespace: str, name: str) -> Lease:
        """Return a lease. Raises ApiError (404)."""
        stored = self.leases.get(name)
        exists = stored is not None and stored.metadata.namespace == namespace
        await self._record_call("get_lease", name, exists=exists)
        return self.leases[name]

    async def create_lease(self, lease: Lease) -> Lease:
        """Create a lease. Raises ApiError (409)."""
        name = lease.metadata.name
        await self._record_call("create_lease", name, exists=name not in self.leases, otherwise=409)
        return self._put_lease(lease)

    async def replace_lease(self, lease: Lease) -> Lease:
        """Replace a lease if its resource version matches. Raises ApiError (404 or 409)."""
        name = lease.metadata.name
        stored = self.leases.get(name)
        code = 409 if stored is not None else 404
        same = stored is not None and (
            stored.metadata.resource_version == lease.metadata.resource_version
        )
        await self._record_call("replace_lease", name, exists=same, otherwise=code)
        return self._put_lease(lease)

    # Calls of tests and other writers

    def put_node(self, node: Node) -> Node:
        number = str(next(self._numbers))
        metadata = structs.replace(
            node.metadata, resource_version=number, uid=node.metadata.uid or f"uid-{number}"
        )
        stored = from_document(to_document(structs.replace(node, metadata=metadata)), Node)
        self.nodes[stored.metadata.name] = stored
        return stored

    def change_node(self, name: str, patch: dict[str, Any]) -> Node:
        """Apply a strategic merge patch of another writer."""
        return self.put_node(
            from_document(apply_patch(to_document(self.nodes[name]), patch, NODE), Node)
        )

    def fail(self, verb: str, *codes: int) -> None:
        """Make the next calls of this verb fail with these HTTP statuses."""
        if verb not in VERBS:
            raise ValueError(f"unknown verb {verb!r}; use one of {', '.join(VERBS)}")
        self._failures[verb].extend(codes)

    def fail_all(self, code: int = 503) -> None:
        """Make every call fail from now on; 0 ends the outage."""
        self._outage_code = code

    def hang(self, *, hanging: bool = True) -> None:
        """Make calls block forever from now on, or stop doing so."""
        self._hanging = hanging

    # Internals

    async def _patch(self, verb: str, name: str, patch: bytes) -> Node:
        document = decode_json(patch, dict[str, Any])
        uid = (document.get("metadata") or {}).get("uid")
        stored = self.nodes.get(name)
        same = stored is not None and uid in (None, stored.metadata.uid)
        code = 404 if stored is None else 409
        await self._record_call(verb, name, exists=same, otherwise=code, patch=patch)
        return self.change_node(name, document)

    async def _record_call(
        self,
        verb: str,
        name: str,
        *,
        exists: bool,
        otherwise: int = 404,
        patch: bytes | None = None,
    ) -> None:
        """Record a call; raise its injected or natural error."""
        if self._hanging:
            self.calls.append(NodeCall(verb=verb, name=name, code=0, patch=patch))
            await asyncio.get_running_loop().create_future()
        failures = self._failures[verb]
        code = self._outage_code or (failures.popleft() if failures else 0 if exists else otherwise)
        self.calls.append(NodeCall(verb=verb, name=name, code=code or None, patch=patch))
        if code:
            raise api_error(code, f"{verb} {name}: HTTP {code}")

    def _put_lease(self, lease: Lease) -> Lease:
        metadata = structs.replace(lease.metadata, resource_version=str(next(self._numbers)))
        stored = structs.replace(lease, metadata=metadata)
        self.leases[metadata.name] = from_document(to_document(stored), Lease)
        return self.leases[metadata.name]
