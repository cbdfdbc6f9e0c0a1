"""Accept connections on a port: not more than there are places for, and none that stays silent.

The descriptors of a process are shared. Those of its connections are bounded here, so that the
rest of the process has the others. Until a client has sent a whole first message, a connection is
a socket and nothing else. Then its protocol begins, that of few connections in one turn of the
loop; while others wait for that, none is accepted.
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
from podstatus.base.net.connection_table import ConnectionStage, ConnectionTable, StageLimits
from podstatus.base.net.first_message import MAX_PEEK_BYTES, client_hello_size, request_head_size
from podstatus.base.net.sockets import close_silently, shutdown_sockets

logger = logging.getLogger(__name__)

FIRST_REQUEST_SECONDS = 10.0
"""From accept to the end of the first request's head, TLS included, however it is dripped."""
BACKLOG = 4096
"""Connections that the kernel holds until they are accepted, as far as net.core.somaxconn allows;
more are dropped, and their clients retry after a second."""
_ACCEPTS_PER_ITERATION = 64
"""Each costs about 20 µs if the client is silent."""
_HANDSHAKES_PER_ITERATION = 4
"""Each costs about a millisecond if it speaks TLS; other work of the loop has its turn between."""
_MAX_READY = 2 * _HANDSHAKES_PER_ITERATION
"""Connections that wait for that; while there are more, none is accepted."""
_SWEEP_SECONDS = 1.0
_RETRY_SECONDS = 0.5
"""Until accept is tried again when there are no descriptors."""
_PAUSE_SECONDS = 0.02
"""The same while all handshakes are too young to be given up."""
_EVICTIONS_PER_FAILURE = 8
"""Connections that are closed then."""
_RESOURCE_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class _Connection:
    """One connection; its place is free once its socket is closed."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.is_reader_registered = False
        self.protocol: asyncio.BaseProtocol | None = None
        """Once there is one, the socket belongs to its transport."""
        self.transport: asyncio.BaseTransport | None = None
        self.handshake_task: asyncio.Task[None] | None = None

    @property
    def is_closed(self) -> bool:
        return self.socket.fileno() < 0


class AcceptLoop:
    """Listens on a port, and gives each connection that speaks a protocol of its own."""

    def __init__(
        self,
        make_protocol: ProtocolFactory,
        limits: StageLimits,
        *,
        ssl_context: ssl.SSLContext | None = None,
        first_request_seconds: float | None = None,
    ) -> None:
        """To be made in the loop that it is to run in."""
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
        self._log_rate = LogRateLimiter()
        self._port = 0

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; the port. Raises OSError."""
        found = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self._listen(family, (address[0], self._port or port, *address[2:]))
        except BaseException:
            self.close()
            raise
        for listening in self._listeners:
            self._loop.add_reader(listening.fileno(), self._accept, listening)
        self._sweep()
        return self._port

    def close(self) -> None:
        """Listen no more, and close the connections on which no request was made."""
        for timer in self._timers.values():
            timer.cancel()
        for listening in self._listeners:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        self._listeners.clear()
        for stage in (ConnectionStage.SILENT, ConnectionStage.HANDSHAKE, ConnectionStage.HEAD):
            for connection in self._table.connections(stage):
                self._abort(connection)

    async def abort_all(self) -> None:
        """Close the others as well, without a goodbye."""
        for connection in self._table.connections():
            self._abort(connection)
        await shutdown_sockets(())

    @contextmanager
    def serving(self, protocol: object) -> Iterator[None]:
        """While a request on this protocol's connection is being answered."""
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
        """Note that the client is known; whether there is a place for it."""
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
        listening = socket.socket(family, socket.SOCK_STREAM)
        self._listeners.append(listening)
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listening.bind(address)
        except OSError as error:
            text = f"error while attempting to bind on address {address}: {error.strerror}".lower()
            raise OSError(error.errno, text) from error
        listening.listen(BACKLOG)
        self._port = listening.getsockname()[1]

    def _accept(self, listener: socket.socket) -> None:
        """Accept what waits. Who has sent nothing by now may be evicted by the next one."""
        now = self._loop.time()
        silent: list[tuple[_Connection, int]] = []
        while len(silent) < _ACCEPTS_PER_ITERATION and len(self._ready) < _MAX_READY:
            if not self._table.has_room(now):
                self._pause(listener, _PAUSE_SECONDS)
                break
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError):
                break
            except ConnectionError:
                continue  # it was closed while it waited
            except OSError as error:
                self._back_off(listener, error)
                break
            accepted.setblocking(False)
            connection = _Connection(accepted)
            self._close_evicted(self._table.add(connection, now), ConnectionStage.SILENT)
            if (wanted := self._peek_first_message(connection)) is not None:
                silent.append((connection, wanted))
        # In a flood most have been evicted by now, and need no reader.
        for connection, wanted in silent:
            if not connection.is_closed:
                self._add_reader(connection, wanted)

    def _back_off(self, listener: socket.socket, error: OSError) -> None:
        self._pause(listener, _RETRY_SECONDS)
        if error.errno in _RESOURCE_ERRNOS:
            for _ in range(_EVICTIONS_PER_FAILURE):
                self._close_evicted(self._table.evict_idle(), ConnectionStage.SILENT)
        if self._log_rate.allow("accept"):
            logger.warning(
                "connections cannot be accepted, will retry: port=%d error=%s", self._port, error
            )

    def _pause(self, listener: socket.socket, seconds: float) -> None:
        """Accept none for a while: the loop would ask again and again."""
        self._loop.remove_reader(listener.fileno())
        self._timers[listener] = self._loop.call_later(
            seconds, self._loop.add_reader, listener.fileno(), self._accept, listener
        )

    def _on_readable(self, connection: _Connection) -> None:
        self._remove_reader(connection)
        if (wanted := self._peek_first_message(connection)) is not None:
            self._add_reader(connection, wanted)

    def _add_reader(self, connection: _Connection, size: int) -> None:
        """Have it looked at when so many bytes are there: not for every byte."""
        if size > 1:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        connection.is_reader_registered = True
        self._loop.add_reader(connection.socket.fileno(), self._on_readable, connection)

    def _remove_reader(self, connection: _Connection) -> None:
        if connection.is_reader_registered:
            connection.is_reader_registered = False
            self._loop.remove_reader(connection.socket.fileno())

    def _peek_first_message(self, connection: _Connection) -> int | None:
        """Begin if the whole first message is there, or close what is none.

        Otherwise how many bytes have to be there before it is looked at again.
        """
        start = _recv(connection.socket, socket.MSG_PEEK)
        wanted = None if start is None else self._message_size(start)
        if start is None or wanted is None:
            # What is left unread would make the close a reset.
            _recv(connection.socket)
            self._abort(connection)
            return None
        if start and wanted <= len(start):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._queue_handshake(connection)
            return None
        return wanted if start else 1

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
            # No TLS, a certificate that another CA has signed, or the client has gone.
            logger.debug("connection not established: port=%d error=%r", self._port, error)
        else:
            self._advance(connection, ConnectionStage.HEAD)
        finally:
            connection.handshake_task = None  # no cycle: a connection takes 300 KiB

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
                # Clients that notice connect again at once: 5,000 of them are a storm.
                close_silently(connection.socket)
            self._abort(connection)

    def _abort(self, connection: _Connection) -> None:
        """Close a connection without a goodbye, whatever state it is in."""
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
                # CPython 3.11.2 cannot abort TLS that was closed twice; there is its socket.
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
        """Once a second: forget what is closed, close what is overdue, log what was evicted."""
        self._remove_closed()
        for connection in self._table.find_overdue(self._loop.time()):
            self._abort(connection)
        self._log_evictions()
        self._timers[self] = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _log_evictions(self) -> None:
        if not self._evicted or not self._log_rate.allow("evicted"):
            return
        logger.warning(
            "connections closed to make room for others: "
            "port=%d silent=%d handshake=%d head=%d unknown=%d known=%d",
            self._port,
            *(self._evicted[stage] for stage in ConnectionStage),
        )
        self._evicted.clear()


def _recv(accepted: socket.socket, flags: int = 0) -> bytes | None:
    """What the client has sent so far; None if it has gone."""
    try:
        return accepted.recv(MAX_PEEK_BYTES, flags) or None
    except (BlockingIOError, InterruptedError):
        return b""
    except OSError:
        return None


def descriptor_limit() -> int:
    """How many descriptors this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
