"""The node's port `NodeApi` over HTTP, and a reflector for a single Node."""

from typing import Protocol

from podstatus.client.api_client import ApiClient
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.client.informer.object_store import change_handler
from podstatus.client.informer.reflector import Reflector
from podstatus.client.rest.resources import LEASES, NODES
from podstatus.client.typed.codec import decode_response, encode_body
from podstatus.kube.api_errors import RejectedError
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node


class HttpNodeApi:
    """Reads and writes nodes and leases; returns them without managed fields. Raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def get_node(self, name: str) -> Node:
        return _read_node(await self._client.get(NODES, name), name)

    async def create_node(self, node: Node) -> Node:
        return _read_node(await self._client.create(NODES, encode_body(node)), node.metadata.name)

    async def patch_node(self, name: str, patch: bytes) -> Node:
        return _read_node(await self._client.patch(NODES, name, patch), name)

    async def patch_node_status(self, name: str, patch: bytes) -> Node:
        return _read_node(await self._client.patch(NODES, name, patch, subresource="status"), name)

    async def get_lease(self, namespace: str, name: str) -> Lease:
        return decode_response(await self._client.get(LEASES, name, namespace=namespace), Lease)

    async def create_lease(self, lease: Lease) -> Lease:
        namespace = lease.metadata.namespace
        return decode_response(
            await self._client.create(LEASES, encode_body(lease), namespace=namespace), Lease
        )

    async def replace_lease(self, lease: Lease) -> Lease:
        meta = lease.metadata
        body = await self._client.replace(
            LEASES, meta.name, encode_body(lease), namespace=meta.namespace
        )
        return decode_response(body, Lease)


def _read_node(body: bytes, name: str) -> Node:
    """Decode the requested node; reject another one, which only a broken server returns."""
    node = decode_response(body, Node)
    if node.metadata.name != name or not node.metadata.uid:
        raise RejectedError(f"the response is not the node {name}")
    return node


class NodeWatcher(Protocol):
    """Receives the changes of a node, as `podstatus.node.node_cache.NodeCache` does."""

    def update(self, node: Node) -> None:
        """Handle a new or changed node."""

    def remove(self, node: Node) -> None:
        """Handle the deletion of the node."""


def node_reflector(source: ListerWatcher, name: str, watcher: NodeWatcher) -> Reflector[Node]:
    """Return a reflector for one node that notifies `watcher`; the caller runs it."""
    selection = ObjectSelection(NODES, field_selector=f"metadata.name={name}")
    return Reflector(source, selection, Node, change_handler(watcher.update, watcher.remove))
