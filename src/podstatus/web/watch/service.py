"""Those who watch: how many there may be, how long they may take, and their end.

Each holds a bounded number of bytes here. Who leaves them where they are for too long is cut off
with a reason, and may come back and go on after what it has seen.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from http import HTTPStatus

import msgspec
from aiohttp import web

from podstatus.base.clock import Clock, Elapsed
from podstatus.base.net.sockets import enable_keepalive, transport_socket
from podstatus.observe.history.store import HistoryError
from podstatus.observe.metrics.watch_counters import CloseReason, LimitScope, WatchCounts
from podstatus.observe.status_view import StatusView
from podstatus.web.errors import SECURITY_HEADERS, HttpError, too_long, unavailable
from podstatus.web.query_parameters import read_query
from podstatus.web.v1.handlers import MAX_QUERY_BYTES
from podstatus.web.watch.pods import PodEventCache, PodStream, WatchTiming
from podstatus.web.watch.request import WatchRequest, parse_watch_request
from podstatus.web.watch.sse import RETRY, closing_event, count_events
from podstatus.web.watch.transitions import TransitionPages, TransitionStream

logger = logging.getLogger(__name__)

_HEADERS = {
    **SECURITY_HEADERS,
    "Content-Type": "text/event-stream",
    # Proxies are not to collect events until a buffer is full.
    "X-Accel-Buffering": "no",
}
_STOP_SECONDS = 0.5
_CLOSE_SECONDS = 0.2


class WatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What those who watch may cost."""

    max_clients: int = 100
    """Clients at the same time."""
    max_clients_per_user: int = 60
    """Of them, those of one user, and those who do not say who they are: so that these, who may be
    any program of this machine, do not keep others out."""
    stall_seconds: float = 15.0
    """In which a client has to take something of what waits for it."""
    max_seconds: float = 3600.0
    """After which one has to come back: who may watch is asked then only."""
    linger_seconds: float = 15.0
    """For one that was cut off to take the rest, and the reason."""
    buffer_bytes: int = 128 * 2**10
    """That wait for a client in this process, about."""
    socket_bytes: int = 128 * 2**10
    """That wait for it in the kernel, which doubles it: with more, it would keep some megabytes."""


class WatchService:
    """Answers those who watch."""

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
        self._transition_pages = TransitionPages(view)
        self._counts = counts or WatchCounts()
        self._stopping = False
        self._tasks: dict[asyncio.Task[object], str] = {}
        """Those who watch; who each is."""

    @property
    def count(self) -> int:
        """How many watch."""
        return len(self._tasks)

    async def handle(self, request: web.BaseRequest, user: str = "") -> web.StreamResponse:
        """Send events until the client has gone, or is cut off. Raises Refusal.

        `user` is the client, if it says so.
        """
        raw = request.rel_url.raw_query_string
        if len(raw) > MAX_QUERY_BYTES:
            raise too_long(f"the query has more than {MAX_QUERY_BYTES} bytes; ask for less")
        wanted = parse_watch_request(read_query(raw), request.headers.get("Last-Event-ID", ""))
        with self._register(user):
            async with aclosing(self._chunks(wanted)) as pieces:
                first = await _first_chunk(pieces)
                response = web.StreamResponse(headers=_HEADERS)
                response.force_close()
                self._limit_buffers(request.transport)
                await response.prepare(request)
                await self._send(request, response, first, pieces)
                return response

    async def stop(self) -> None:
        """Cut everybody off."""
        self._stopping = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)

    def _chunks(self, wanted: WatchRequest) -> AsyncGenerator[bytes, None]:
        clock, pace = self._clock, self._timing
        if wanted.transitions:
            return TransitionStream(self._transition_pages, wanted, clock, pace).chunks()
        return PodStream(self._view.snapshot_cache, wanted, self._event_cache, clock, pace).chunks()

    async def _send(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        first: bytes,
        pieces: AsyncGenerator[bytes, None],
    ) -> None:
        try:
            await self._write(response, RETRY + first)
            await self._write_all(response, pieces)
        except _WatchClosedError as error:
            self._counts.count_close(error.reason)
            await self._close(request, response, f"{error}; come back and go on")
        except HistoryError as error:
            logger.warning("watch of moments ended: error=%s", error)
            self._counts.count_close(CloseReason.HISTORY)
            await self._close(request, response, "the history cannot be read; the log says why")
        except ConnectionError as error:
            logger.debug("one who watched went away: error=%r", error)
        except asyncio.CancelledError:
            if self._stopping:
                self._counts.count_close(CloseReason.STOP)
            await self._close(request, response, "the server stops; come back later")
            raise

    async def _write_all(
        self, response: web.StreamResponse, pieces: AsyncGenerator[bytes, None]
    ) -> None:
        longest, elapsed = self._limits.max_seconds, Elapsed(self._clock)
        async for piece in pieces:
            await self._write(response, piece)
            if elapsed.seconds() > longest:
                raise _WatchClosedError(CloseReason.LONG, f"you have watched for {longest:g} s")

    async def _write(self, response: web.StreamResponse, piece: bytes) -> None:
        try:
            async with asyncio.timeout(self._limits.stall_seconds):
                await response.write(piece)
                self._counts.events += count_events(piece)
        except TimeoutError as error:
            seconds = self._limits.stall_seconds
            raise _WatchClosedError(
                CloseReason.SLOW, f"you have taken nothing for {seconds:g} s"
            ) from error

    async def _close(
        self, request: web.BaseRequest, response: web.StreamResponse, reason: str
    ) -> None:
        """Say why, if the client still listens, and let go of it soon in any case."""
        transport = request.transport
        if transport is None or transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        loop.call_later(self._limits.linger_seconds, transport.abort)
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await response.write(closing_event(reason))
                await response.write_eof()
                return
        # It goes when what waits has been taken.
        transport.close()

    def _limit_buffers(self, transport: asyncio.Transport | None) -> None:
        enable_keepalive(transport)
        if transport is not None:
            transport.set_write_buffer_limits(high=self._limits.buffer_bytes)
        found = transport_socket(transport)
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.socket_bytes)

    @contextmanager
    def _register(self, who: str) -> Iterator[None]:
        """Be one of those who watch. Raises Refusal if there are too many."""
        self._check_limits(who)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        self._tasks[task] = who
        self._counts.connected += 1
        try:
            yield
        finally:
            del self._tasks[task]
            self._counts.connected -= 1
            if not self._tasks:
                self._event_cache.clear()

    def _check_limits(self, who: str) -> None:
        limits = self._limits
        if len(self._tasks) >= limits.max_clients:
            self._counts.count_rejection(LimitScope.ALL)
            raise _too_many_watches(
                f"{limits.max_clients} clients watch already, and no more are allowed"
            )
        if sum(it == who for it in self._tasks.values()) >= limits.max_clients_per_user:
            self._counts.count_rejection(LimitScope.CLIENT)
            whose = f"of {who}" if who else "that do not say who they are (by a token)"
            raise _too_many_watches(
                f"{limits.max_clients_per_user} clients {whose} watch already, and no more "
                "are allowed"
            )


class _WatchClosedError(Exception):
    """The client has had enough time: of which it has taken nothing, or for all."""

    def __init__(self, reason: CloseReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _too_many_watches(why: str) -> HttpError:
    return HttpError(
        HTTPStatus.TOO_MANY_REQUESTS, f"{why}; try again later", **{"Retry-After": "5"}
    )


async def _first_chunk(pieces: AsyncGenerator[bytes, None]) -> bytes:
    """There is one soon, be it that all was sent. Raises Refusal."""
    try:
        return await anext(pieces)
    except HistoryError as error:
        raise unavailable(f"the history cannot be read now: {error}") from error
