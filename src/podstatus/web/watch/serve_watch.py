"""Serve /v1/watch: limit the number of clients, and disconnect slow ones.

The bytes buffered for a client are bounded. A client that does not read for too long is
disconnected with a reason, and can reconnect and resume after the last event it has seen.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from http import HTTPStatus

import msgspec
from aiohttp import web

from podstatus.base.clock import Clock
from podstatus.base.net.sockets import enable_keepalive, transport_socket
from podstatus.observe.history.sqlite_store import HistoryError
from podstatus.observe.metrics.watch_counters import CloseReason, LimitScope, WatchCounts
from podstatus.observe.ports import StatusView
from podstatus.web.errors import SECURITY_HEADERS, HttpError, unavailable
from podstatus.web.v1.filters import read_bounded_query
from podstatus.web.v1.wire import ClosingEvent
from podstatus.web.watch.pod_stream import PodEventCache, PodStream, WatchTiming
from podstatus.web.watch.request import WatchRequest, parse_watch_request
from podstatus.web.watch.sse import RETRY, count_events, encode_event
from podstatus.web.watch.transition_stream import TransitionPages, TransitionStream

logger = logging.getLogger(__name__)

_HEADERS = {
    **SECURITY_HEADERS,
    "Content-Type": "text/event-stream",
    # Keep proxies from buffering events.
    "X-Accel-Buffering": "no",
}
_STOP_SECONDS = 0.5
_CLOSE_SECONDS = 0.2


class WatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of clients, time and memory."""

    max_clients: int = 100
    """Concurrent clients."""
    max_clients_per_user: int = 60
    """Concurrent clients of one user. Anonymous clients count as one user: they may be any program
    of this machine, and must not keep others out."""
    stall_seconds: float = 15.0
    """How long a client may read nothing while data is waiting."""
    max_seconds: float = 3600.0
    """Duration of a watch. Authorization is checked only when a client connects."""
    linger_seconds: float = 15.0
    """For a disconnected client to read the rest and the reason."""
    buffer_bytes: int = 128 * 2**10
    """Approximate bytes buffered for a client in this process."""
    socket_bytes: int = 128 * 2**10
    """SO_SNDBUF, which the kernel doubles; its default would buffer some megabytes."""


class WatchService:
    """Handles watch requests. For one event loop."""

    def __init__(
        self,
        view: StatusView,
        clock: Clock,
        *,
        timing: WatchTiming | None = None,
        limits: WatchLimits | None = None,
        counts: WatchCounts | None = None,
    ) -> None:
        self._view = view
        self._clock = clock
        self._timing = timing or WatchTiming()
        self._limits = limits or WatchLimits()
        self._event_cache = PodEventCache(clock)
        self._transition_pages = TransitionPages(view.history)
        self._counts = counts or WatchCounts()
        self._stopping = False
        self._tasks: dict[asyncio.Task[object], str] = {}
        """The task of each client, with its user."""

    @property
    def count(self) -> int:
        return len(self._tasks)

    async def handle(self, request: web.BaseRequest, user: str = "") -> web.StreamResponse:
        """Send events until the client disconnects or is disconnected. Raises HttpError.

        `user` is empty for an anonymous client.
        """
        query = read_bounded_query(request.rel_url.raw_query_string)
        selection = parse_watch_request(query, request.headers.get("Last-Event-ID", ""))
        with self._register(user):
            async with aclosing(self._chunks(selection)) as chunks:
                first = await _first_chunk(chunks)
                response = web.StreamResponse(headers=_HEADERS)
                response.force_close()
                self._limit_buffers(request.transport)
                await response.prepare(request)
                await self._send(request, response, first, chunks)
                return response

    async def stop(self) -> None:
        self._stopping = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)

    def _chunks(self, request: WatchRequest) -> AsyncGenerator[bytes, None]:
        clock, timing = self._clock, self._timing
        if request.transitions:
            return TransitionStream(self._transition_pages, request, clock, timing).chunks()
        cache = self._view.snapshot_cache
        return PodStream(cache, request, self._event_cache, clock, timing).chunks()

    async def _send(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        first: bytes,
        chunks: AsyncGenerator[bytes, None],
    ) -> None:
        try:
            await self._write(response, RETRY + first)
            await self._write_all(response, chunks)
        except _WatchClosedError as error:
            self._counts.closes.inc(error.reason.value)
            await self._close(request, response, f"{error}; reconnect to resume")
        except HistoryError as error:
            logger.warning("watch of pod transitions failed: error=%s", error)
            self._counts.closes.inc(CloseReason.HISTORY.value)
            await self._close(request, response, "the history cannot be read; see the agent's log")
        except ConnectionError as error:
            logger.debug("watch client disconnected: error=%r", error)
        except asyncio.CancelledError:
            if self._stopping:
                self._counts.closes.inc(CloseReason.STOP.value)
            await self._close(request, response, "the server is stopping; reconnect later")
            raise

    async def _write_all(
        self, response: web.StreamResponse, chunks: AsyncGenerator[bytes, None]
    ) -> None:
        maximum, started_at = self._limits.max_seconds, self._clock.monotonic()
        async for chunk in chunks:
            await self._write(response, chunk)
            if self._clock.monotonic() - started_at > maximum * 1e9:
                raise _WatchClosedError(CloseReason.LONG, f"a watch lasts at most {maximum:g} s")

    async def _write(self, response: web.StreamResponse, chunk: bytes) -> None:
        try:
            async with asyncio.timeout(self._limits.stall_seconds):
                await response.write(chunk)
                self._counts.events += count_events(chunk)
        except TimeoutError as error:
            seconds = self._limits.stall_seconds
            raise _WatchClosedError(
                CloseReason.SLOW, f"the client has read nothing for {seconds:g} s"
            ) from error

    async def _close(
        self, request: web.BaseRequest, response: web.StreamResponse, reason: str
    ) -> None:
        """Send the reason if the client still reads, and abort after `linger_seconds`."""
        transport = request.transport
        if transport is None or transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        loop.call_later(self._limits.linger_seconds, transport.abort)
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await response.write(encode_event(ClosingEvent(reason=reason)))
                await response.write_eof()
                return
        # Closes once the buffered data has been read.
        transport.close()

    def _limit_buffers(self, transport: asyncio.Transport | None) -> None:
        enable_keepalive(transport)
        if transport is not None:
            transport.set_write_buffer_limits(high=self._limits.buffer_bytes)
        raw_socket = transport_socket(transport)
        if raw_socket is not None:
            raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.socket_bytes)

    @contextmanager
    def _register(self, user: str) -> Iterator[None]:
        """Register this task as a client. Raises HttpError (429) at a limit."""
        self._check_limits(user)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - handlers run in tasks
        self._tasks[task] = user
        self._counts.connected += 1
        try:
            yield
        finally:
            del self._tasks[task]
            self._counts.connected -= 1
            if not self._tasks:
                self._event_cache.clear()

    def _check_limits(self, user: str) -> None:
        limits = self._limits
        if len(self._tasks) >= limits.max_clients:
            self._counts.rejections.inc(LimitScope.ALL.value)
            raise _too_many_watches(
                f"{limits.max_clients} watch clients are connected, which is the limit"
            )
        if sum(it == user for it in self._tasks.values()) >= limits.max_clients_per_user:
            self._counts.rejections.inc(LimitScope.CLIENT.value)
            whose = f"of {user}" if user else "without credentials (a token)"
            raise _too_many_watches(
                f"{limits.max_clients_per_user} watch clients {whose} are connected, which is the "
                "limit"
            )


class _WatchClosedError(Exception):
    """The server closes the watch: the client stalled, or the maximum duration is over."""

    def __init__(self, reason: CloseReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _too_many_watches(why: str) -> HttpError:
    return HttpError(
        HTTPStatus.TOO_MANY_REQUESTS, f"{why}; try again later", **{"Retry-After": "5"}
    )


async def _first_chunk(chunks: AsyncGenerator[bytes, None]) -> bytes:
    """The first chunk, which is available at once: at least `synced`. Raises HttpError."""
    try:
        return await anext(chunks)
    except HistoryError as error:
        raise unavailable(f"the history cannot be read now: {error}") from error
