"""What only a container's node can answer: logs, exec, attach, and all else a node is asked.

A node that fails after the client has its WebSocket is told there, as upstream's stream
translator does: kubectl would take a plain refusal as a reason to try SPDY.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

import aiohttp
from aiohttp import ClientResponse

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import Problem
from podstatus.apiserver.http.messages import Answer, Request, Stream, Tunnel
from podstatus.apiserver.http.router import Target
from podstatus.apiserver.kubelet.address import NodePlace, place_of, split_node_name
from podstatus.apiserver.kubelet.kubelet_client import (
    NodeClient,
    NodeRefusalError,
    NodeSocket,
    words_of,
)
from podstatus.apiserver.kubelet.response_checker import log_refusal, upgrade_refusal
from podstatus.apiserver.kubelet.stream_options import (
    choose_protocol,
    container_path,
    log_query,
    stream_query,
)
from podstatus.apiserver.registry import Registry
from podstatus.apiserver.resources import NODES
from podstatus.kube.unstructured import nested_str

_LOOK_SECONDS = 1.0
"""How often we look whether somebody still wants a stream on which nothing happens."""


class NodeEndpoints:
    """Passes requests on to nodes."""

    def __init__(self, registry: Registry, client: NodeClient) -> None:
        self._registry = registry
        self._client = client

    async def log(self, request: Request, target: Target) -> Answer | Stream:
        """What a container wrote. Raises Problem."""
        query = log_query(request, target.name or "")
        pod = self._registry.get(target).document()
        path = container_path("containerLogs", pod, request.query.get("container", ""))
        node = nested_str(pod, "spec", "nodeName")
        if not node:
            return Answer(code=204)
        place = self._place(node, missing="pods")
        verify = not request.flag("insecureSkipTLSVerifyBackend")
        if verify:
            self._client.check()
        response = await self._client.get(place, _joined(path, query), verify=verify)
        if not 200 <= response.status <= 206:
            raise log_refusal(response.status, await _last_words(response), target.name or "")
        return _stream(response, request.is_gone, content_type="text/plain")

    def talk(self, request: Request, target: Target) -> Tunnel:
        """A conversation with a process in a container. Raises Problem."""
        pod = self._registry.get(target).document()
        path = container_path(target.subresource, pod, request.query.get("container", ""))
        node = nested_str(pod, "spec", "nodeName")
        if not node:
            raise errors.bad_request(f"pod {target.name} does not have a host assigned")
        place = self._place(node, missing="pods")
        self._client.check()
        protocol = choose_protocol(request)
        asked = _joined(path, stream_query(request))
        return Tunnel(protocol=protocol, connect=partial(self._connect, place, asked, protocol))

    async def proxy(self, request: Request, target: Target) -> Answer | Stream:
        """Whatever a node answers at a path. Raises Problem."""
        name, port = split_node_name(target.name or "")
        place = self._place(name, missing=NODES.plural)
        if port not in ("", str(place.port)):
            raise errors.bad_request(
                f"port {port[:20]} of node {name} is not its agent's; only that is asked"
            )
        self._client.check()
        if not target.below:
            # Upstream: proxyRedirectsforRootPath, for the sake of relative links.
            location = _joined(f"{request.path}/", request.raw_query)
            return Answer(code=301, headers={"Location": location})
        response = await self._client.get(place, _joined(target.below, request.raw_query))
        return _stream(response, request.is_gone, content_type=response.content_type)

    def _place(self, node: str, *, missing: str) -> NodePlace:
        """Where a node is. `missing` is what upstream says is missing if there is none."""
        try:
            stored = self._registry.get(Target(resource=NODES, name=node))
        except Problem as problem:
            raise errors.not_found(missing, node) from problem
        return place_of(stored.document(), address=self._client.address)

    async def _connect(self, place: NodePlace, asked: str, protocol: str) -> NodeSocket:
        try:
            return await self._client.open_socket(place, asked, protocol)
        except NodeRefusalError as refusal:
            raise upgrade_refusal(refusal.code, refusal.words) from refusal


def _joined(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


async def _last_words(response: ClientResponse) -> str:
    try:
        return await words_of(response)
    except aiohttp.ClientError as error:
        return str(error)
    finally:
        response.close()


def _stream(response: ClientResponse, is_gone: Callable[[], bool], content_type: str) -> Stream:
    return Stream(
        lines=_pieces(response, is_gone),
        end=response.close,
        content_type=content_type,
        code=response.status,
    )


async def _pieces(
    response: ClientResponse, is_gone: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """What a node sends, as it comes; as upstream has it, one that breaks off has ended."""
    while not is_gone():
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                piece = await response.content.readany()
        except TimeoutError:
            continue
        except (aiohttp.ClientError, OSError):
            return
        if not piece:
            return
        yield piece
