"""Accept connections on a port, with limits on their number and on silent clients.

The file descriptors of a process are shared. The number of connections is limited here, so that the
rest of the process has enough of them. Until a client has sent a complete first message, a
connection is only a socket. Then its protocol is started, for a few connections in each iteration
of the event loop; while others wait for that, no connection is accepted.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from podstatus.base.log_rate import LogRateLimiter
from podstatus.base.net.connection_eviction import (
    BEFORE_FIRST_REQUEST,
    ConnectionStage,
    ConnectionTable,
    StageLimits,
)
from podstatus.base.net.first_message import MAX_PEEK_BYTES, client_hello_size, request_head_size
from podstatus.base.net.sockets import close_silently, shutdown_sockets
from podstatus.base.system_clock import SystemClock

logger = logging.getLogger(__name__)

FIRST_REQUEST_SECONDS = 10.0
"""Deadline from accept to the end of the first request's head, including the TLS handshake."""
BACKLOG = 4096
"""Connections that the kernel queues for accept, limited by net.core.somaxconn; further ones are
dropped, and their clients retry after a second."""
_ACCEPTS_PER_ITERATION = 64
"""An accept takes about 20 µs if the client is silent."""
_HANDSHAKES_PER_ITERATION = 4
"""A TLS handshake takes about 1 ms; other tasks of the loop run between iterations."""
_MAX_READY = 2 * _HANDSHAKES_PER_ITERATION
"""No connection is accepted while this many wait for their handshake."""
_SWEEP_SECONDS = 1.0
_RETRY_SECONDS = 0.5
"""Delay before the next accept after the process ran out of descriptors."""
_PAUSE_SECONDS = 0.02
"""Delay before the next accept while all handshakes are too young to be aborted."""
_EVICTIONS_PER_FAILURE = 8
"""Connections that are closed when the process runs out of descriptors."""
_RESOURCE_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class _Connection:
    """A connection; its slot is free once the socket is closed."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.is_reader_registered = False
        self.protocol: asyncio.BaseProtocol | None = None
        """Once set, the transport owns the socket."""
        self.transport: asyncio.BaseTransport | None = None
        self.handshake_task: asyncio.Task[None] | None = None

    @property
    def is_closed(self) -> bool:
        return self.socket.fileno() < 0


class AcceptLoop:
    """Listens on a port and starts a protocol for each connection with a complete first message."""

    def __init__(
        self,
        make_protocol: ProtocolFactory,
        limits: StageLimits,
        *,
        ssl_context: ssl.SSLContext | None = None,
        first_request_seconds: float | None = None,
    ) -> None:
        """Must be called in the event loop in which it will run."""
        seconds = FIRST_REQUEST_SECONDS if first_request_seconds is None else first_request_seconds
        self._make_protocol = make_protocol
        self._ssl_context = ssl_context
        self._first_request_seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._table: ConnectionTable[_Connection] = ConnectionTable(limits, seconds)
        self._by_protocol: dict[object, _Connection] = {}
        self._ready: deque[_Connection] = deque()
        self._listeners: list[socket.socket] = []
        self._timers: dict[object, asyncio.TimerHandle] = {}
        self._evicted: Counter[ConnectionStage] = Counter()
        self._log_rate = LogRateLimiter(SystemClock())
        self._port = 0

    async def start(self, host: str, port: int) -> int:
        """Start listening and return the port. Raises OSError."""
        addresses = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(addresses):
                self._listen(family, (address[0], self._port or port, *address[2:]))
        except BaseException:
            self.close()
            raise
        for listener in self._listeners:
            self._loop.add_reader(listener.fileno(), self._accept, listener)
        self._sweep()
        return self._port

    def close(self) -> None:
        """Stop listening, and close connections without a complete first request."""
        for timer in self._timers.values():
            timer.cancel()
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
            listener.close()
        self._listeners.clear()
        for stage in BEFORE_FIRST_REQUEST:
            for connection in self._table.connections(stage):
                self._abort(connection)

    async def abort_all(self) -> None:
        """Close all other connections too, without a TLS or HTTP shutdown."""
        for connection in self._table.connections():
            self._abort(connection)
        await shutdown_sockets(())

    @contextmanager
    def serving(self, protocol: object) -> Iterator[None]:
        """Mark the connection of this protocol as active while a request is being handled."""
        connection = self._by_protocol.get(protocol)
        if connection is None:
            yield
            return
        self._advance(connection, ConnectionStage.UNAUTHENTICATED)
        self._table.set_active(connection, active=True)
        try:
            yield
        finally:
            self._table.set_active(connection, active=False)

    def mark_authenticated(self, protocol: object) -> bool:
        """Mark the client as authenticated; return False if there is no slot for it."""
        connection = self._by_protocol.get(protocol)
        if connection is None:
            return False
        if self._table.is_full(ConnectionStage.AUTHENTICATED):
            self._remove_closed()
        evicted = self._table.advance(connection, ConnectionStage.AUTHENTICATED)
        if evicted is connection:
            return False
        self._close_evicted(evicted, ConnectionStage.AUTHENTICATED)
        return True

    def _listen(self, family: int, address: tuple[str | int, ...]) -> None:
        listener = socket.socket(family, socket.SOCK_STREAM)
        self._listeners.append(listener)
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind(address)
        except OSError as error:
            text = f"error while attempting to bind on address {address}: {error.strerror}".lower()
            raise OSError(error.errno, text) from error
        listener.listen(BACKLOG)
        self._port = listener.getsockname()[1]

    def _accept(self, listener: socket.socket) -> None:
        """Accept pending connections. Each may evict the oldest silent one."""
        now = self._loop.time()
        silent: list[tuple[_Connection, int]] = []
        while len(silent) < _ACCEPTS_PER_ITERATION and len(self._ready) < _MAX_READY:
            if not self._table.can_accept(now):
                self._pause(listener, _PAUSE_SECONDS)
                break
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError):
                break
            except ConnectionError:
                continue  # it was closed while it was queued
            except OSError as error:
                self._back_off(listener, error)
                break
            accepted.setblocking(False)
            connection = _Connection(accepted)
            self._close_evicted(self._table.add(connection, now), ConnectionStage.SILENT)
            if (size := self._peek_first_message(connection)) is not None:
                silent.append((connection, size))
        # In a flood, most have been evicted by now and need no reader.
        for connection, size in silent:
            if not connection.is_closed:
                self._add_reader(connection, size)

    def _back_off(self, listener: socket.socket, error: OSError) -> None:
        self._pause(listener, _RETRY_SECONDS)
        if error.errno in _RESOURCE_ERRNOS:
            for _ in range(_EVICTIONS_PER_FAILURE):
                self._close_evicted(self._table.evict_idle(), ConnectionStage.SILENT)
        if self._log_rate.allow("accept"):
            logger.warning(
                "cannot accept connections, will retry: port=%d error=%s", self._port, error
            )

    def _pause(self, listener: socket.socket, seconds: float) -> None:
        """Stop accepting for a while, since the loop would call again immediately."""
        self._loop.remove_reader(listener.fileno())
        self._timers[listener] = self._loop.call_later(
            seconds, self._loop.add_reader, listener.fileno(), self._accept, listener
        )

    def _on_readable(self, connection: _Connection) -> None:
        self._remove_reader(connection)
        if (size := self._peek_first_message(connection)) is not None:
            self._add_reader(connection, size)

    def _add_reader(self, connection: _Connection, size: int) -> None:
        """Call `_on_readable` once this many bytes have arrived, not for every byte."""
        if size > 1:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        connection.is_reader_registered = True
        self._loop.add_reader(connection.socket.fileno(), self._on_readable, connection)

    def _remove_reader(self, connection: _Connection) -> None:
        if connection.is_reader_registered:
            connection.is_reader_registered = False
            self._loop.remove_reader(connection.socket.fileno())

    def _peek_first_message(self, connection: _Connection) -> int | None:
        """Start the handshake if the first message is complete; close an invalid connection.

        Otherwise return the number of bytes to wait for.
        """
        start = _recv(connection.socket, socket.MSG_PEEK)
        size = None if start is None else self._message_size(start)
        if start is None or size is None:
            # Close sends a reset if there is unread data.
            _recv(connection.socket)
            self._abort(connection)
            return None
        if start and size <= len(start):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._queue_handshake(connection)
            return None
        return size if start else 1

    def _queue_handshake(self, connection: _Connection) -> None:
        stage = ConnectionStage.HEAD if self._ssl_context is None else ConnectionStage.HANDSHAKE
        self._advance(connection, stage)
        self._ready.append(connection)
        if len(self._ready) == 1:
            self._loop.call_soon(self._start_handshakes)

    def _start_handshakes(self) -> None:
        for _ in range(min(_HANDSHAKES_PER_ITERATION, len(self._ready))):
            connection = self._ready.popleft()
            if not connection.is_closed:
                connection.handshake_task = self._loop.create_task(self._open(connection))
        if self._ready:
            self._loop.call_soon(self._start_handshakes)

    async def _open(self, connection: _Connection) -> None:
        has_tls = self._ssl_context is not None
        try:
            connection.transport, _ = await self._loop.connect_accepted_socket(
                partial(self._create_protocol, connection),
                connection.socket,
                ssl=self._ssl_context,
                ssl_handshake_timeout=self._first_request_seconds if has_tls else None,
            )
        except OSError as error:
            # Not TLS, a certificate of another CA, or the client has disconnected.
            logger.debug("cannot establish connection: port=%d error=%r", self._port, error)
        else:
            self._advance(connection, ConnectionStage.HEAD)
        finally:
            connection.handshake_task = None  # breaks a cycle: a connection takes 300 KiB

    def _create_protocol(self, connection: _Connection) -> asyncio.BaseProtocol:
        connection.protocol = protocol = self._make_protocol()
        self._by_protocol[protocol] = connection
        return protocol

    def _message_size(self, start: bytes) -> int | None:
        return request_head_size(start) if self._ssl_context is None else client_hello_size(start)

    def _advance(self, connection: _Connection, stage: ConnectionStage) -> None:
        if self._table.is_full(stage):
            self._remove_closed()
        self._close_evicted(self._table.advance(connection, stage), stage)

    def _close_evicted(self, connection: _Connection | None, stage: ConnectionStage) -> None:
        if connection is not None:
            self._evicted[stage] += 1
            if stage is not ConnectionStage.AUTHENTICATED:
                # Clients that notice would reconnect at once: 5,000 of them are a storm.
                close_silently(connection.socket)
            self._abort(connection)

    def _abort(self, connection: _Connection) -> None:
        """Close a connection in any state, without a TLS or HTTP shutdown."""
        self._remove(connection)
        if connection.is_closed:
            return
        if connection.protocol is None:
            self._remove_reader(connection)
            if connection.handshake_task is not None:
                connection.handshake_task.cancel()
            connection.socket.close()
            return
        if connection.handshake_task is not None:
            connection.handshake_task.cancel()
        elif isinstance(connection.transport, asyncio.WriteTransport):
            try:
                connection.transport.abort()
            except AttributeError:
                # CPython 3.11.2 cannot abort a TLS transport that was closed twice.
                with suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)

    def _remove(self, connection: _Connection) -> None:
        self._table.remove(connection)
        self._by_protocol.pop(connection.protocol, None)

    def _remove_closed(self) -> None:
        for connection in self._table.connections():
            if connection.is_closed:
                self._remove(connection)

    def _sweep(self) -> None:
        """Every second: remove closed connections, close overdue ones, log evictions."""
        self._remove_closed()
        for connection in self._table.find_overdue(self._loop.time()):
            self._abort(connection)
        self._log_evictions()
        self._timers[self] = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _log_evictions(self) -> None:
        if not self._evicted or not self._log_rate.allow("evicted"):
            return
        logger.warning(
            "closed connections because the connection limit of the port was reached: "
            "port=%d silent=%d handshake=%d head=%d unauthenticated=%d authenticated=%d",
            self._port,
            *(self._evicted[stage] for stage in ConnectionStage),
        )
        self._evicted.clear()


def _recv(accepted: socket.socket, flags: int = 0) -> bytes | None:
    """Return the data received so far; None if the client has disconnected."""
    try:
        return accepted.recv(MAX_PEEK_BYTES, flags) or None
    except (BlockingIOError, InterruptedError):
        return b""
    except OSError:
        return None


def descriptor_limit() -> int:
    """Return the soft limit of open file descriptors of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
