"""The accept loop on real sockets, with an echo protocol."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest

from podstatus.base.net.accept_loop import AcceptLoop
from podstatus.base.net.connection_eviction import StageLimits

LIMITS = StageLimits(silent=4, head=4, unauthenticated=4, authenticated=2)
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class Echo(asyncio.Protocol):
    """Sends back what it receives; a first byte `K` authenticates the client."""

    def __init__(self, port: "Port") -> None:
        self._port = port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        with self._port.accepting.serving(self):
            if data[:1] == b"K" and not self._port.accepting.mark_authenticated(self):
                self._transport.write(b"no place")
                return
            self._transport.write(data)


class Port:
    """An accept loop on the loopback interface."""

    def __init__(self, seconds: float) -> None:
        self.accepting = AcceptLoop(lambda: Echo(self), LIMITS, first_request_seconds=seconds)
        self.number = 0

    def connect(self) -> socket.socket:
        """Return a client socket whose connect succeeded."""
        client = socket.create_connection(("127.0.0.1", self.number))
        client.setblocking(False)
        return client

    async def ask(self, client: socket.socket, data: bytes = REQUEST) -> bytes:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(30):
            await loop.sock_sendall(client, data)
            return await loop.sock_recv(client, 4096)


@asynccontextmanager
async def serving(seconds: float = 60) -> AsyncIterator[Port]:
    port = Port(seconds)
    port.number = await port.accepting.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        port.accepting.close()
        await port.accepting.abort_all()


@pytest.mark.parametrize("data", [b"", b"G", REQUEST[:-1]])
async def test_clients_that_do_not_ask_keep_no_other_out(data: bytes) -> None:
    async with serving() as port:
        with ExitStack() as clients:
            for _ in range(200):
                clients.enter_context(port.connect()).send(data)
                await asyncio.sleep(0)
            client = clients.enter_context(port.connect())
            assert await port.ask(client) == REQUEST


async def test_an_authenticated_client_stays_while_others_come_and_go() -> None:
    async with serving() as port:
        with ExitStack() as clients:
            authenticated = clients.enter_context(port.connect())
            assert await port.ask(authenticated, b"K" + REQUEST) == b"K" + REQUEST
            unknown = []
            for _ in range(20):
                unknown.append(clients.enter_context(port.connect()))
                assert await port.ask(unknown[-1]) == REQUEST
            assert await port.ask(authenticated) == REQUEST
            # The oldest unauthenticated connection was evicted.
            with suppress(ConnectionError):
                assert await port.ask(unknown[0]) == b""
            assert await port.ask(unknown[-1]) == REQUEST


async def test_idle_authenticated_clients_are_evicted_for_new_ones() -> None:
    async with serving() as port:
        with ExitStack() as clients:
            for _ in range(5):
                client = clients.enter_context(port.connect())
                assert await port.ask(client, b"K" + REQUEST) == b"K" + REQUEST


async def test_drips_do_not_prolong_the_deadline() -> None:
    async with serving(seconds=1) as port:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with port.connect() as client, suppress(ConnectionError):
            while loop.time() - began < 20:
                client.send(b"x")
                await asyncio.sleep(0.05)
        assert 0.9 < loop.time() - began < 15


async def test_a_client_that_goes_leaves_its_place() -> None:
    async with serving() as port:
        for _ in range(50):
            with port.connect() as client:
                assert await port.ask(client, b"K" + REQUEST) == b"K" + REQUEST


async def test_no_descriptors_are_logged_once_and_survived(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as port:
        with ExitStack() as clients:
            waiting = [clients.enter_context(port.connect()) for _ in range(20)]
            before = resource.getrlimit(resource.RLIMIT_NOFILE)
            with socket.socket() as free:
                lowest = free.fileno()
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
            try:
                await asyncio.sleep(0.7)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            assert await port.ask(waiting[-1]) == REQUEST
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "Too many open files" in caplog.text
    assert "Traceback" not in caplog.text


async def test_evictions_are_logged_with_numbers_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as port:
        with ExitStack() as clients:
            for _ in range(2):
                for _ in range(10):
                    clients.enter_context(port.connect())
                await asyncio.sleep(1.1)
    (record,) = caplog.records
    assert "closed connections" in record.getMessage()
