"""A proxy that delays every byte by a fixed time, in order and without limiting throughput."""

import asyncio
import contextlib
import selectors

import msgspec

from peers.orders import Lines

_CHUNK = 1 << 16
_END = b""


class Way(msgspec.Struct, frozen=True):
    """The target port, and the delay per direction."""

    port: int
    delay_seconds: float


class Entrance(msgspec.Struct, frozen=True):
    """The port of the proxy."""

    port: int


async def carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_seconds: float
) -> None:
    """Copy one direction with a delay, including its end."""
    in_flight: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def take() -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                in_flight.put_nowait((loop.time() + delay_seconds, data))
        in_flight.put_nowait((loop.time() + delay_seconds, _END))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(take())
        while True:
            due, data = await in_flight.get()
            await asyncio.sleep(due - loop.time())
            if data == _END:
                break
            writer.write(data)
    writer.close()


class Proxy:
    """Connects every client to the server."""

    def __init__(self, way: Way, tasks: asyncio.TaskGroup) -> None:
        self._way = way
        self._tasks = tasks
        self._connections: list[asyncio.Task[None]] = []

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a new client to the server."""
        self._connections.append(self._tasks.create_task(self._connect(reader, writer)))

    def close(self) -> None:
        """Close all connections that are still open."""
        for connection in self._connections:
            connection.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection("127.0.0.1", self._way.port)
        upstream_reader, upstream_writer = upstream
        async with asyncio.TaskGroup() as directions:
            directions.create_task(carry(reader, upstream_writer, self._way.delay_seconds))
            directions.create_task(carry(upstream_reader, writer, self._way.delay_seconds))


async def main() -> None:
    """Serve until standard input is closed."""
    lines = await Lines.open()
    way = await lines.read(Way)
    if way is None:
        return
    async with asyncio.TaskGroup() as tasks:
        proxy = Proxy(way, tasks)
        server = await asyncio.start_server(proxy.accept, "127.0.0.1")
        lines.write(Entrance(server.sockets[0].getsockname()[1]))
        await lines.read(Way)
        server.close()
        proxy.close()


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that sleeps with microsecond precision: with epoll, 5 ms take up to 6 ms."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner, contextlib.suppress(KeyboardInterrupt):
        runner.run(main())
