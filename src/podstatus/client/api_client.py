"""A thin client of a Kubernetes API server: bytes in, bytes out."""

from collections.abc import Awaitable, Callable, Coroutine
from copy import copy
from types import TracebackType
from typing import Any, Self

from podstatus.client.auth.config import ClientConfig
from podstatus.client.rest.rate_limit import RateLimiter
from podstatus.client.rest.request import (
    JSON,
    MAX_LIST_BYTES,
    STRATEGIC_MERGE,
    RestRequest,
    with_query,
)
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.server_health import ServerHealth
from podstatus.client.rest.transport import ResponseStream, Timeouts, Transport
from podstatus.client.rest.watch import WatchStream

_WATCH_GRACE_SECONDS = 30.0
"""After which a watch is ended from here, if the server does not do it when it was asked to."""


class ApiClient:
    """Speaks to one API server, within `async with` and one event loop.

    Objects are the JSON text that travels. All calls raise the errors of
    `podstatus.kube.errors`. Each request comes back within the time-outs of `timing`; before it may
    be the wait for a limit or for a plugin that says who we are, after it a second one if our
    credentials were refused.
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
        """`health` is told when the server is heard; several clients may share one."""
        self._config = config
        self._transport = Transport(config, timeouts or Timeouts(), user_agent, health)
        self._limit = limit

    async def __aenter__(self) -> Self:
        self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.close()

    @property
    def server(self) -> str:
        """Where the server is."""
        return self._config.server

    @property
    def namespace(self) -> str:
        """The namespace for those who name none."""
        return self._config.namespace

    def with_rate_limit(self, limit: RateLimiter | None) -> "ApiClient":
        """The same client over the same connections, for a purpose with a limit of its own."""
        twin = copy(self)
        twin._limit = limit  # noqa: SLF001 - of the same class
        return twin

    async def get(
        self,
        resource: ApiResource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> bytes:
        """One object."""
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
        """A List of objects, or one page of it: `limit` at most, after `continue_token`."""
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
        """What happens after a version: `async with … as events`, then `async for`.

        Bookmarks are among the events. It ends when the server ends it, after
        `timeout_seconds`. If nothing is said for `idle_timeout_seconds`, it raises SilentError: the
        server has forgotten us, or nothing happened (bookmarks come about once a minute, but not
        all servers send them for what rests).
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
        """Create an object; or, with a name and a subresource, a part of one, as `binding`."""
        if subresource:
            path = resource.object(name, namespace, subresource)
        elif resource.namespaced and namespace is None:
            raise ValueError(f"{resource.plural} are in namespaces; pass the one it is to be in")
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
        """Put an object in place of the one that is there."""
        return await self._call(
            RestRequest("PUT", resource.object(name, namespace, subresource), body)
        )

    def patch(
        self,
        resource: ApiResource,
        name: str,
        body: bytes,
        *,
        namespace: str | None = None,
        subresource: str = "",
        content_type: str = STRATEGIC_MERGE,
    ) -> Coroutine[Any, Any, bytes]:
        """Patch an object; the object afterwards."""
        # No coroutine of its own: each one on the way is gone through at every step of the call,
        # and this is the way of every status.
        path = resource.object(name, namespace, subresource)
        return self._call(RestRequest("PATCH", path, body, content_type))

    async def delete(
        self,
        resource: ApiResource,
        name: str,
        *,
        namespace: str | None = None,
        options: bytes | None = None,
    ) -> bytes:
        """Delete an object; `options` are DeleteOptions, with grace period and preconditions."""
        return await self._call(
            RestRequest("DELETE", resource.object(name, namespace), options, JSON)
        )

    def _call(self, request: RestRequest) -> Coroutine[Any, Any, bytes]:
        if self._limit is None:
            return self._transport.call(request)
        return self._call_rate_limited(self._limit, request)

    async def _call_rate_limited(self, limit: RateLimiter, request: RestRequest) -> bytes:
        await limit.wait()
        return await self._transport.call(request)


class WatchContext:
    """A watch within `async with`."""

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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        if self._stream is not None:
            self._stream.close()
