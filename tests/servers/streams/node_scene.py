"""A node that is only a port, its Node, and pods on it: for logs and exec through a server."""

import itertools
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPResponse
from urllib.parse import urlencode

import aiohttp

from podstatus.base.net.sockets import shutdown_sockets, transport_socket
from tests.servers.pods import IMAGE, created, pods
from tests.support.processes.api_servers import MERGE, Document, Server
from tests.support.processes.stand_in_node import V5, NodeThread, StandInNode
from tests.support.web.aiohttp_transport import transport_of

FEATURE = "ExtendWebSocketsToKubelet"
"""What a Node declares that speaks WebSocket."""
_numbers = itertools.count()


class NodeScene:
    """What a test needs."""

    def __init__(self, server: Server, namespace: str, thread: NodeThread) -> None:
        self.server = server
        self.namespace = namespace
        self.thread = thread
        self.name = self.add_node(thread.node.port)

    @property
    def node(self) -> StandInNode:
        return self.thread.node

    def add_node(
        self, port: int, *, address: str = "127.0.0.1", features: Sequence[str] = (FEATURE,)
    ) -> str:
        """One more Node; its name."""
        name = f"{self.namespace}-{next(_numbers)}"
        created(self.server.client, "/api/v1/nodes", {"metadata": {"name": name}})
        status = {
            "addresses": [{"type": "InternalIP", "address": address}] if address else [],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "declaredFeatures": list(features),
        }
        patched = {"status": status}
        code, answer = self.server.client.patch(f"/api/v1/nodes/{name}/status", patched, MERGE)
        assert code == 200, answer
        return name

    def add_pod(
        self, name: str = "web", *, node: str | None = None, containers: Sequence[str] = ("main",)
    ) -> str:
        """One more pod, on our node unless told; where the node has its container."""
        spec: Document = {"containers": [{"name": c, "image": IMAGE} for c in containers]}
        if node != "":
            spec["nodeName"] = node or self.name
        created(
            self.server.client,
            pods(self.namespace),
            {"metadata": {"name": name}, "spec": spec},
        )
        return f"{self.namespace}/{name}/{containers[0]}"

    def log(self, pod: str = "web", **query: str) -> tuple[int, Document | str]:
        """Code and body of a request for a log."""
        path = pods(self.namespace, pod, "log")
        return self.server.client.get(f"{path}?{urlencode(query)}")

    @contextmanager
    def followed(self, pod: str = "web") -> Iterator[HTTPResponse]:
        """The log as it grows."""
        connection = self.server.access.connect()
        path = f"{pods(self.namespace, pod, 'log')}?follow=true"
        connection.request(
            "GET", path, headers={"Authorization": f"Bearer {self.server.access.token}"}
        )
        try:
            yield connection.getresponse()
        finally:
            connection.close()

    @asynccontextmanager
    async def socket(
        self, command: Sequence[str], *, pod: str = "web", verb: str = "exec", **flags: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A conversation, by WebSocket."""
        access = self.server.access
        pairs = [*(("command", word) for word in command), *flags.items()]
        url = f"{access.url}{pods(self.namespace, pod, verb)}?{urlencode(pairs)}"
        context = ssl.create_default_context(cafile=access.authority)
        headers = {"Authorization": f"Bearer {access.token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, headers=headers, protocols=(V5,), ssl=context) as socket,
        ):
            below = transport_socket(transport_of(socket))
            try:
                yield socket
            finally:
                await socket.close()
                await shutdown_sockets([below])
