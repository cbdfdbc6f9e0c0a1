"""A thin client of a Kubernetes API server: JSON bytes in, JSON bytes out."""

from collections.abc import Awaitable, Callable
from copy import copy
from typing import Self

from podstatus.base.rate_limiter import RateLimiter
from podstatus.client.auth.config import ClientConfig
from podstatus.client.rest.http_transport import ResponseStream, Timeouts, Transport
from podstatus.client.rest.request import (
    JSON,
    MAX_LIST_BYTES,
    STRATEGIC_MERGE,
    RestRequest,
    with_query,
)
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.server_health import ServerHealth
from podstatus.client.rest.watch_events import WatchStream

_WATCH_GRACE_SECONDS = 30.0
"""The client ends a watch this long after its `timeoutSeconds`, if the server does not."""


class ApiClient:
    """A client of one API server, for use within `async with` and one event loop.

    Objects are JSON text. All calls raise the errors of `podstatus.kube.api_errors`. Each request
    returns within `timeouts`; before it, a call may wait for the rate limit or for an exec plugin,
    and after a 401 it sends a second request with renewed credentials.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        timeouts: Timeouts | None = None,
        user_agent: str = "podstatus",
        limit: RateLimiter | None = None,
        health: ServerHealth | None = None,
    ) -> None:
        """`health` records the server's responses; several clients may share one."""
        self._config = config
        self._transport = Transport(config, timeouts or Timeouts(), user_agent, health)
        self._limit = limit

    async def __aenter__(self) -> Self:
        self._transport.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    @property
    def server(self) -> str:
        return self._config.server

    @property
    def namespace(self) -> str:
        """Return the default namespace of the context."""
        return self._config.namespace

    def with_rate_limit(self, limit: RateLimiter | None) -> "ApiClient":
        """Return a client with another rate limit that shares this one's connections."""
        client = copy(self)
        client._limit = limit  # noqa: SLF001 - of the same class
        return client

    async def get(
        self,
        resource: ApiResource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> bytes:
        """Return one object, or one of its subresources."""
        return await self._call(RestRequest("GET", resource.object(name, namespace, subresource)))

    async def list(
        self,
        resource: ApiResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> bytes:
        """Return a List, or one page of it: at most `limit` objects after `continue_token`."""
        query: dict[str, str | int] = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit,
            "continue": continue_token,
            "resourceVersion": resource_version,
        }
        path = with_query(resource.collection(namespace), query)
        return await self._call(RestRequest("GET", path, max_bytes=MAX_LIST_BYTES))

    def watch(
        self,
        resource: ApiResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_seconds: int = 300,
        idle_timeout_seconds: float = 90.0,
    ) -> "WatchContext":
        """Watch the changes after `resource_version`: `async with … as events`, then `async for`.

        The events include bookmarks. The watch ends when the server ends it, after
        `timeout_seconds`. After `idle_timeout_seconds` without data it raises WatchIdleError: the
        connection is dead, or nothing happened (bookmarks come about once a minute, but some
        servers send none while no object changes).
        """
        query: dict[str, str | int] = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_seconds,
        }
        request = RestRequest("GET", with_query(resource.collection(namespace), query))

        async def open_stream() -> ResponseStream:
            if self._limit is not None:
                await self._limit.wait()
            return await self._transport.open_stream(
                request,
                total_seconds=timeout_seconds + _WATCH_GRACE_SECONDS,
                idle_timeout_seconds=idle_timeout_seconds,
            )

        return WatchContext(
            open_stream, request.path_without_query, self._config.source, self._transport.redact
        )

    async def create(
        self,
        resource: ApiResource,
        body: bytes,
        *,
        namespace: str | None = None,
        name: str = "",
        subresource: str = "",
    ) -> bytes:
        """Create an object, or with a name a subresource such as `binding`; return the result."""
        if subresource:
            path = resource.object(name, namespace, subresource)
        elif resource.namespaced and namespace is None:
            raise ValueError(f"{resource.plural} are namespaced; pass a namespace")
        else:
            path = resource.collection(namespace)
        return await self._call(RestRequest("POST", path, body))

    async def replace(
        self,
        resource: ApiResource,
        name: str,
        body: bytes,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> bytes:
        """Replace an object (PUT) and return the result."""
        return await self._call(
            RestRequest("PUT", resource.object(name, namespace, subresource), body)
        )

    async def patch(
        self,
        resource: ApiResource,
        name: str,
        body: bytes,
        *,
        namespace: str | None = None,
        subresource: str = "",
        content_type: str = STRATEGIC_MERGE,
    ) -> bytes:
        """Patch an object and return the result."""
        path = resource.object(name, namespace, subresource)
        return await self._call(RestRequest("PATCH", path, body, content_type))

    async def delete(
        self,
        resource: ApiResource,
        name: str,
        *,
        namespace: str | None = None,
        options: bytes | None = None,
    ) -> bytes:
        """Delete an object; `options` is a DeleteOptions with grace period and preconditions."""
        return await self._call(
            RestRequest("DELETE", resource.object(name, namespace), options, JSON)
        )

    async def _call(self, request: RestRequest) -> bytes:
        if self._limit is not None:
            await self._limit.wait()
        return await self._transport.call(request)


class WatchContext:
    """Opens a watch within `async with`, and closes it on exit."""

    def __init__(
        self,
        open_stream: Callable[[], Awaitable[ResponseStream]],
        path: str,
        source: str,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._open_stream = open_stream
        self._path = path
        self._source = source
        self._redact = redact
        self._stream: ResponseStream | None = None

    async def __aenter__(self) -> WatchStream:
        self._stream = await self._open_stream()
        return WatchStream(self._stream, f"watch {self._path}", self._source, self._redact)

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
