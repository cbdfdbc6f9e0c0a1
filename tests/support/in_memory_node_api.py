"""An in-memory API for nodes and leases, with real patches and errors."""

import asyncio
import itertools
from collections import defaultdict, deque
from typing import Any, NamedTuple

from msgspec import structs

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.api_errors import api_error
from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node
from podstatus.kube.patch import NODE, apply_patch


class NodeCall(NamedTuple):
    """A recorded call of the API."""

    verb: str
    code: int
    """The HTTP status of a failed call, 0 otherwise."""


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
        await self._record_call("get_node", 0 if name in self.nodes else 404)
        return self.nodes[name]

    async def create_node(self, node: Node) -> Node:
        await self._record_call("create_node", 409 if node.metadata.name in self.nodes else 0)
        return self.put_node(node)

    async def patch_node(self, name: str, patch: bytes) -> Node:
        return await self._patch("patch_node", name, patch)

    async def patch_node_status(self, name: str, patch: bytes) -> Node:
        return await self._patch("patch_node_status", name, patch)

    async def get_lease(self, namespace: str, name: str) -> Lease:
        stored = self.leases.get(name)
        exists = stored is not None and stored.metadata.namespace == namespace
        await self._record_call("get_lease", 0 if exists else 404)
        return self.leases[name]

    async def create_lease(self, lease: Lease) -> Lease:
        await self._record_call("create_lease", 409 if lease.metadata.name in self.leases else 0)
        return self._put_lease(lease)

    async def replace_lease(self, lease: Lease) -> Lease:
        stored, meta = self.leases.get(lease.metadata.name), lease.metadata
        code = 404
        if stored is not None:
            code = 0 if stored.metadata.resource_version == meta.resource_version else 409
        await self._record_call("replace_lease", code)
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
        """Make the next calls of this verb, a method of this class, fail with these statuses."""
        assert hasattr(self, verb), verb
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
        stored, code = self.nodes.get(name), 404
        if stored is not None:
            code = 0 if uid in (None, stored.metadata.uid) else 409
        await self._record_call(verb, code)
        return self.change_node(name, document)

    async def _record_call(self, verb: str, code: int) -> None:
        """Record a call; raise its injected error, or that of `code`, if it is not 0."""
        if self._hanging:
            self.calls.append(NodeCall(verb, 0))
            await asyncio.get_running_loop().create_future()
        failures = self._failures[verb]
        code = self._outage_code or (failures.popleft() if failures else code)
        self.calls.append(NodeCall(verb, code))
        if code:
            raise api_error(code, f"{verb}: HTTP {code}")

    def _put_lease(self, lease: Lease) -> Lease:
        metadata = structs.replace(lease.metadata, resource_version=str(next(self._numbers)))
        stored = structs.replace(lease, metadata=metadata)
        self.leases[metadata.name] = from_document(to_document(stored), Lease)
        return self.leases[metadata.name]
