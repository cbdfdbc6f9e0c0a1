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

from podstatus.base.log_rate import LogRate
from podstatus.base.net.connection_table import ConnectionTable, Stage, StageLimits
from podstatus.base.net.first_message import MAX_PEEK, head_size, hello_size
from podstatus.base.net.sockets import cut, vanish_when_closed

logger = logging.getLogger(__name__)

FIRST_REQUEST_SECONDS = 10.0
"""From accept to the end of the first request's head, TLS included, however it is dripped."""
BACKLOG = 4096
"""Connections that the kernel holds until they are accepted, as far as net.core.somaxconn allows;
more are dropped, and their clients retry after a second."""
_ACCEPTS_PER_TURN = 64
"""Each costs about 20 µs if the client is silent."""
_OPENED_PER_TURN = 4
"""Each costs about a millisecond if it speaks TLS; other work of the loop has its turn between."""
_MAX_READY = 2 * _OPENED_PER_TURN
"""Connections that wait for that; while there are more, none is accepted."""
_SWEEP_SECONDS = 1.0
_RETRY_SECONDS = 0.5
"""Until accept is tried again when there are no descriptors."""
_PAUSE_SECONDS = 0.02
"""The same while all handshakes are too young to be given up."""
_GIVEN_UP = 8
"""Connections that are closed then."""
_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

MakeProtocol = Callable[[], asyncio.BaseProtocol]


class _Connection:
    """One connection; its place is free once its socket is closed."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.is_waited_for = False
        self.protocol: asyncio.BaseProtocol | None = None
        """Once there is one, the socket belongs to its transport."""
        self.transport: asyncio.BaseTransport | None = None
        self.opening: asyncio.Task[None] | None = None

    @property
    def is_closed(self) -> bool:
        return self.socket.fileno() < 0


class AcceptLoop:
    """Listens on a port, and gives each connection that speaks a protocol of its own."""

    def __init__(
        self,
        make_protocol: MakeProtocol,
        limits: StageLimits,
        *,
        ssl_context: ssl.SSLContext | None = None,
        first_request_seconds: float | None = None,
    ) -> None:
        """To be made in the loop that it is to run in."""
        seconds = FIRST_REQUEST_SECONDS if first_request_seconds is None else first_request_seconds
        self._make_protocol = make_protocol
        self._ssl_context = ssl_context
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._table: ConnectionTable[_Connection] = ConnectionTable(limits, seconds)
        self._by_protocol: dict[object, _Connection] = {}
        self._ready: deque[_Connection] = deque()
        self._listening: list[socket.socket] = []
        self._timers: dict[object, asyncio.TimerHandle] = {}
        self._evicted: Counter[Stage] = Counter()
        self._log_rate = LogRate()
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
        for listening in self._listening:
            self._loop.add_reader(listening.fileno(), self._accept, listening)
        self._sweep()
        return self._port

    def close(self) -> None:
        """Listen no more, and close the connections on which no request was made."""
        for timer in self._timers.values():
            timer.cancel()
        for listening in self._listening:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        self._listening.clear()
        for stage in (Stage.SILENT, Stage.HANDSHAKE, Stage.HEAD):
            for connection in self._table.connections(stage):
                self._cut(connection)

    async def cut_all(self) -> None:
        """Close the others as well, without a goodbye."""
        for connection in self._table.connections():
            self._cut(connection)
        await cut(())

    @contextmanager
    def serving(self, protocol: object) -> Iterator[None]:
        """While a request on this protocol's connection is being answered."""
        connection = self._by_protocol.get(protocol)
        if connection is None:
            yield
            return
        self._advance(connection, Stage.UNKNOWN)
        self._table.set_active(connection, active=True)
        try:
            yield
        finally:
            self._table.set_active(connection, active=False)

    def authenticate(self, protocol: object) -> bool:
        """Note that the client is known; whether there is a place for it."""
        connection = self._by_protocol.get(protocol)
        if connection is None:
            return False
        if self._table.is_full(Stage.KNOWN):
            self._forget_closed()
        evicted = self._table.advance(connection, Stage.KNOWN)
        if evicted is connection:
            return False
        self._close_evicted(evicted, Stage.KNOWN)
        return True

    def _listen(self, family: int, address: tuple[str | int, ...]) -> None:
        listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.append(listening)
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

    def _accept(self, listening: socket.socket) -> None:
        """Accept what waits. Who has sent nothing by now may be evicted by the next one."""
        now = self._loop.time()
        silent: list[tuple[_Connection, int]] = []
        while len(silent) < _ACCEPTS_PER_TURN and len(self._ready) < _MAX_READY:
            if not self._table.has_room(now):
                self._pause(listening, _PAUSE_SECONDS)
                break
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError):
                break
            except ConnectionError:
                continue  # it was closed while it waited
            except OSError as error:
                self._hold_off(listening, error)
                break
            accepted.setblocking(False)
            connection = _Connection(accepted)
            self._close_evicted(self._table.add(connection, now), Stage.SILENT)
            if (wanted := self._look_at(connection)) is not None:
                silent.append((connection, wanted))
        # In a flood most have been evicted by now, and need no reader.
        for connection, wanted in silent:
            if not connection.is_closed:
                self._wait_for(connection, wanted)

    def _hold_off(self, listening: socket.socket, error: OSError) -> None:
        self._pause(listening, _RETRY_SECONDS)
        if error.errno in _NO_RESOURCES:
            for _ in range(_GIVEN_UP):
                self._close_evicted(self._table.evict_idle(), Stage.SILENT)
        if self._log_rate.admit("accept"):
            logger.warning(
                "connections cannot be accepted, will retry: port=%d error=%s", self._port, error
            )

    def _pause(self, listening: socket.socket, seconds: float) -> None:
        """Accept none for a while: the loop would ask again and again."""
        self._loop.remove_reader(listening.fileno())
        self._timers[listening] = self._loop.call_later(
            seconds, self._loop.add_reader, listening.fileno(), self._accept, listening
        )

    def _more_has_come(self, connection: _Connection) -> None:
        self._stop_waiting(connection)
        if (wanted := self._look_at(connection)) is not None:
            self._wait_for(connection, wanted)

    def _wait_for(self, connection: _Connection, size: int) -> None:
        """Have it looked at when so many bytes are there: not for every byte."""
        if size > 1:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        connection.is_waited_for = True
        self._loop.add_reader(connection.socket.fileno(), self._more_has_come, connection)

    def _stop_waiting(self, connection: _Connection) -> None:
        if connection.is_waited_for:
            connection.is_waited_for = False
            self._loop.remove_reader(connection.socket.fileno())

    def _look_at(self, connection: _Connection) -> int | None:
        """Begin if the whole first message is there, or close what is none.

        Otherwise how many bytes have to be there before it is looked at again.
        """
        start = _receive(connection.socket, socket.MSG_PEEK)
        wanted = None if start is None else self._message_size(start)
        if start is None or wanted is None:
            # What is left unread would make the close a reset.
            _receive(connection.socket)
            self._cut(connection)
            return None
        if start and wanted <= len(start):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._begin(connection)
            return None
        return wanted if start else 1

    def _begin(self, connection: _Connection) -> None:
        stage = Stage.HEAD if self._ssl_context is None else Stage.HANDSHAKE
        self._advance(connection, stage)
        self._ready.append(connection)
        if len(self._ready) == 1:
            self._loop.call_soon(self._open_some)

    def _open_some(self) -> None:
        for _ in range(min(_OPENED_PER_TURN, len(self._ready))):
            connection = self._ready.popleft()
            if not connection.is_closed:
                connection.opening = self._loop.create_task(self._open(connection))
        if self._ready:
            self._loop.call_soon(self._open_some)

    async def _open(self, connection: _Connection) -> None:
        has_tls = self._ssl_context is not None
        try:
            connection.transport, _ = await self._loop.connect_accepted_socket(
                partial(self._make, connection),
                connection.socket,
                ssl=self._ssl_context,
                ssl_handshake_timeout=self._seconds if has_tls else None,
            )
        except OSError as error:
            # No TLS, a certificate that another CA has signed, or the client has gone.
            logger.debug("connection not established: port=%d error=%r", self._port, error)
        else:
            self._advance(connection, Stage.HEAD)
        finally:
            connection.opening = None  # no cycle: a connection takes 300 KiB

    def _make(self, connection: _Connection) -> asyncio.BaseProtocol:
        connection.protocol = protocol = self._make_protocol()
        self._by_protocol[protocol] = connection
        return protocol

    def _message_size(self, start: bytes) -> int | None:
        return head_size(start) if self._ssl_context is None else hello_size(start)

    def _advance(self, connection: _Connection, stage: Stage) -> None:
        if self._table.is_full(stage):
            self._forget_closed()
        self._close_evicted(self._table.advance(connection, stage), stage)

    def _close_evicted(self, connection: _Connection | None, stage: Stage) -> None:
        if connection is not None:
            self._evicted[stage] += 1
            if stage is not Stage.KNOWN:
                # Clients that notice connect again at once: 5,000 of them are a storm.
                vanish_when_closed(connection.socket)
            self._cut(connection)

    def _cut(self, connection: _Connection) -> None:
        """Close a connection without a goodbye, whatever state it is in."""
        self._forget(connection)
        if connection.is_closed:
            return
        if connection.protocol is None:
            self._stop_waiting(connection)
            if connection.opening is not None:
                connection.opening.cancel()
            connection.socket.close()
            return
        if connection.opening is not None:
            connection.opening.cancel()
        elif isinstance(connection.transport, asyncio.WriteTransport):
            try:
                connection.transport.abort()
            except AttributeError:
                # CPython 3.11.2 cannot abort TLS that was closed twice; there is its socket.
                with suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)

    def _forget(self, connection: _Connection) -> None:
        self._table.remove(connection)
        self._by_protocol.pop(connection.protocol, None)

    def _forget_closed(self) -> None:
        for connection in self._table.connections():
            if connection.is_closed:
                self._forget(connection)

    def _sweep(self) -> None:
        """Once a second: forget what is closed, close what is overdue, log what was evicted."""
        self._forget_closed()
        for connection in self._table.find_overdue(self._loop.time()):
            self._cut(connection)
        self._log_evictions()
        self._timers[self] = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _log_evictions(self) -> None:
        if not self._evicted or not self._log_rate.admit("evicted"):
            return
        logger.warning(
            "connections closed to make room for others: "
            "port=%d silent=%d handshake=%d head=%d unknown=%d known=%d",
            self._port,
            *(self._evicted[stage] for stage in Stage),
        )
        self._evicted.clear()


def _receive(accepted: socket.socket, flags: int = 0) -> bytes | None:
    """What the client has sent so far; None if it has gone."""
    try:
        return accepted.recv(MAX_PEEK, flags) or None
    except (BlockingIOError, InterruptedError):
        return b""
    except OSError:
        return None


def descriptor_limit() -> int:
    """How many descriptors this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
