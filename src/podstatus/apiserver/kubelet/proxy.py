"""Requests that only the kubelet can answer: logs, exec, attach, node proxy.

If the kubelet fails after the client has its WebSocket, the error is sent over the WebSocket, as by
upstream's stream translator: kubectl would take an HTTP error as a reason to fall back to SPDY.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

import aiohttp
from aiohttp import ClientResponse

from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest, Response, StreamResponse, WebSocketProxy
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.kubelet.address import KubeletAddress, kubelet_address, split_node_name
from podstatus.apiserver.kubelet.kubelet_client import (
    KubeletClient,
    KubeletError,
    KubeletWebSocket,
    read_error_body,
)
from podstatus.apiserver.kubelet.response_checker import log_error, upgrade_error
from podstatus.apiserver.kubelet.stream_options import (
    choose_protocol,
    container_path,
    log_query,
    stream_query,
)
from podstatus.apiserver.resources import NODES
from podstatus.kube.unstructured import nested_str

_POLL_SECONDS = 1.0
"""How often an idle stream checks whether the client is still connected."""


class KubeletProxy:
    """Forwards requests for pods and nodes to kubelets."""

    def __init__(self, registry: Registry, client: KubeletClient) -> None:
        self._registry = registry
        self._client = client

    async def log(self, request: HttpRequest, target: ResourcePath) -> Response | StreamResponse:
        """Stream the log of a container. Raises StatusError."""
        query = log_query(request, target.name or "")
        pod = self._registry.get(target).document()
        path = container_path("containerLogs", pod, request.query.get("container", ""))
        node = nested_str(pod, "spec", "nodeName")
        if not node:
            return Response(code=204)
        address = self._kubelet_address(node, missing="pods")
        verify = not request.flag("insecureSkipTLSVerifyBackend")
        if verify:
            self._client.check_configured()
        response = await self._client.get(address, _with_query(path, query), verify=verify)
        if not 200 <= response.status <= 206:
            raise log_error(response.status, await _read_error(response), target.name or "")
        return _stream_response(response, request.is_disconnected, content_type="text/plain")

    def exec_or_attach(self, request: HttpRequest, target: ResourcePath) -> WebSocketProxy:
        """Return a WebSocket to a process in a container. Raises StatusError."""
        pod = self._registry.get(target).document()
        path = container_path(target.subresource, pod, request.query.get("container", ""))
        node = nested_str(pod, "spec", "nodeName")
        if not node:
            raise errors.bad_request(f"pod {target.name} does not have a host assigned")
        address = self._kubelet_address(node, missing="pods")
        self._client.check_configured()
        protocol = choose_protocol(request)
        path_and_query = _with_query(path, stream_query(request))
        return WebSocketProxy(
            protocol=protocol, connect=partial(self._connect, address, path_and_query, protocol)
        )

    async def proxy(self, request: HttpRequest, target: ResourcePath) -> Response | StreamResponse:
        """Return the kubelet's response to a GET of any path. Raises StatusError."""
        name, port = split_node_name(target.name or "")
        address = self._kubelet_address(name, missing=NODES.plural)
        if port not in ("", str(address.port)):
            raise errors.bad_request(
                f"port {port[:20]} of node {name} is not the kubelet's; no other port is proxied"
            )
        self._client.check_configured()
        if not target.proxy_path:
            # Upstream: proxyRedirectsforRootPath, so that relative links work.
            location = _with_query(f"{request.path}/", request.raw_query)
            return Response(code=301, headers={"Location": location})
        response = await self._client.get(
            address, _with_query(target.proxy_path, request.raw_query)
        )
        return _stream_response(
            response, request.is_disconnected, content_type=response.content_type
        )

    def _kubelet_address(self, node: str, *, missing: str) -> KubeletAddress:
        """Return the address of a node's kubelet.

        Raises StatusError: 404 for a missing node, with `missing` as the resource, as upstream.
        """
        try:
            stored = self._registry.get(ResourcePath(resource=NODES, name=node))
        except StatusError as problem:
            raise errors.not_found(missing, node) from problem
        return kubelet_address(stored.document(), address=self._client.address)

    async def _connect(
        self, address: KubeletAddress, path_and_query: str, protocol: str
    ) -> KubeletWebSocket:
        try:
            return await self._client.open_websocket(address, path_and_query, protocol)
        except KubeletError as refusal:
            raise upgrade_error(refusal.code, refusal.message) from refusal


def _with_query(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


async def _read_error(response: ClientResponse) -> str:
    try:
        return await read_error_body(response)
    except aiohttp.ClientError as error:
        return str(error)
    finally:
        response.close()


def _stream_response(
    response: ClientResponse, is_disconnected: Callable[[], bool], content_type: str
) -> StreamResponse:
    return StreamResponse(
        lines=_iter_chunks(response, is_disconnected),
        close=response.close,
        content_type=content_type,
        code=response.status,
    )


async def _iter_chunks(
    response: ClientResponse, is_disconnected: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield the body as it arrives; as upstream, a broken connection ends the stream."""
    while not is_disconnected():
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                chunk = await response.content.readany()
        except TimeoutError:
            continue
        except (aiohttp.ClientError, OSError):
            return
        if not chunk:
            return
        yield chunk
