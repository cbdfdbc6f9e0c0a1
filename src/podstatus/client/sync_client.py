"""The blocking client: the calls of `ApiClient` without async code."""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from podstatus.base.rate_limiter import RateLimiter
from podstatus.client.api_client import ApiClient, WatchContext
from podstatus.client.auth.config import ClientConfig
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.watch_events import WatchEvent, WatchStream
from podstatus.client.typed.pods import HttpPodApi
from podstatus.kube.objects.pod import ApiUID, Pod

P = ParamSpec("P")
Answer = TypeVar("Answer")
Running = Coroutine[Any, Any, Answer]

_POLL_SECONDS = 1.0
"""Interval at which a waiting caller checks whether another thread has closed the client."""


def _blocking_call(
    call: Callable[Concatenate[ApiClient, P], Running[Answer]],
) -> Callable[Concatenate["SyncClient", P], Answer]:
    """Convert a method of `ApiClient` into a blocking one."""

    @functools.wraps(call)
    def blocking(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self._wait(call(self._client, *args, **kwargs))

    return blocking


def _blocking_watch(
    call: Callable[Concatenate[ApiClient, P], WatchContext],
) -> Callable[Concatenate["SyncClient", P], AbstractContextManager[Iterator[WatchEvent]]]:
    """Convert the watch of `ApiClient` into one for a plain `with` and `for`."""

    @functools.wraps(call)
    @contextmanager
    def blocking(
        self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[Iterator[WatchEvent]]:
        watch = call(self._client, *args, **kwargs)
        events = self._wait(watch.__aenter__())
        try:
            yield self._read(events)
        finally:
            self._call_soon(watch.close)

    return blocking


class SyncClient:
    """`ApiClient` in its own thread, for use within `with`. Thread-safe.

    Raises the errors of `ApiClient`. Do not call it from a coroutine: it blocks the event loop.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        timeouts: Timeouts | None = None,
        user_agent: str = "podstatus",
        limit: RateLimiter | None = None,
    ) -> None:
        self._client = ApiClient(config, timeouts=timeouts, user_agent=user_agent, limit=limit)
        self._thread: _LoopThread | None = None

    def __enter__(self) -> Self:
        self._thread = _LoopThread()
        self._wait(self._client.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._client.__aexit__())
        thread, self._thread = self._require_open(), None
        thread.stop()

    get = _blocking_call(ApiClient.get)
    list = _blocking_call(ApiClient.list)
    create = _blocking_call(ApiClient.create)
    replace = _blocking_call(ApiClient.replace)
    patch = _blocking_call(ApiClient.patch)
    delete = _blocking_call(ApiClient.delete)
    watch = _blocking_watch(ApiClient.watch)

    @property
    def server(self) -> str:
        return self._client.server

    @property
    def namespace(self) -> str:
        return self._client.namespace

    def pod_api(self) -> "ThreadPodApi":
        """Return a `PodApi` for a `StatusManager` in any event loop; this client's thread sends
        the requests."""
        return ThreadPodApi(HttpPodApi(self._client), self._require_open().loop)

    def _read(self, events: WatchStream) -> Iterator[WatchEvent]:
        while (event := self._wait(_next(events))) is not None:
            yield event

    def _wait(self, running: Running[Answer]) -> Answer:
        try:
            loop = self._require_open().loop
        except RuntimeError:
            running.close()
            raise
        future = asyncio.run_coroutine_threadsafe(running, loop)
        try:
            while not wait([future], _POLL_SECONDS).done:
                self._require_open()  # after close, the future would never complete
            return future.result()
        except CancelledError as error:
            raise RuntimeError("the client was closed during a call") from error
        except BaseException:
            future.cancel()  # for example Ctrl-C: also cancel the request
            raise

    def _call_soon(self, call: Callable[[], None]) -> None:
        """Schedule a call in the client's thread, if it is still running."""
        thread = self._thread
        if thread is not None:
            with suppress(RuntimeError):
                thread.loop.call_soon_threadsafe(call)

    def _require_open(self) -> "_LoopThread":
        if self._thread is None:
            raise RuntimeError("the client is not open or already closed; use it within `with`")
        return self._thread


class _LoopThread:
    """An event loop that runs in its own thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="podstatus-client", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the loop, cancel its tasks, and join the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()


class ThreadPodApi:
    """A `PodApi` over a client in another thread's event loop."""

    def __init__(self, pods: HttpPodApi, loop: asyncio.AbstractEventLoop) -> None:
        self._pods = pods
        self._loop = loop

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return await self._run_in_loop(self._pods.get_pod(namespace, name))

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        return await self._run_in_loop(self._pods.patch_pod_status(namespace, name, patch))

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        await self._run_in_loop(
            self._pods.delete_pod(
                namespace, name, uid=uid, grace_period_seconds=grace_period_seconds
            )
        )

    async def _run_in_loop(self, running: Running[Answer]) -> Answer:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(running, self._loop))


async def _next(events: WatchStream) -> WatchEvent | None:
    return await anext(events, None)
