"""Many clients watch many changing pods: events arrive in order, and memory is bounded.

The server is a process of its own, and says what it costs; the clients are in this one.
"""

import asyncio
import ssl
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from podstatus.web.watch.serve_watch import WatchLimits
from tests.web.watch.watch_clients import MAX_MEGABYTES, Client, Sleeper, Verifier

PODS, CLIENTS, VERIFYING, SECONDS, RATE = 5_000, 50, 5, 20, 200

pytestmark = pytest.mark.slow


class ServerProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    async def ask(self, command: str) -> dict[str, Any]:
        self._in.write(f"{command}\n".encode())
        return await self.read()

    async def read(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(await self._out.readline())
        return found


@asynccontextmanager
async def server_process(folder: Path, pods: int) -> AsyncIterator[ServerProcess]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.web.watch.watch_server", str(folder), str(pods)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    try:
        yield ServerProcess(process)
    finally:
        assert process.stdin is not None
        process.stdin.write_eof()
        try:
            await asyncio.wait_for(process.wait(), 60)
        except TimeoutError:
            process.kill()
            await process.wait()


async def test_fifty_clients_follow_5000_pods_at_200_changes_a_second(tmp_path: Path) -> None:
    await follow(tmp_path)


async def follow(folder: Path) -> None:
    async with server_process(folder, PODS) as server:
        where = await server.read()
        alone = await server.ask("cost")
        async with sessions(where) as session, asyncio.TaskGroup() as tasks:
            verifiers = [Verifier(session) for _ in range(VERIFYING)]
            sleeper = Sleeper(session, WatchLimits().stall_seconds + 10)
            counting = [Client(session) for _ in range(CLIENTS - VERIFYING)]
            clients = [*verifiers, *counting, sleeper]
            running = [tasks.create_task(client.run()) for client in clients]
            began = time.monotonic()
            for client in clients[:-1]:
                await client.synced.wait()
            initial = time.monotonic() - began
            before, sizes = await server.ask("cost"), sum(client.size for client in clients)
            done = (await server.ask(f"load {SECONDS} {RATE}"))["done"]
            after, sent = await server.ask("cost"), sum(client.size for client in clients) - sizes
            final = {uid: int(step) for uid, step in (await server.ask("pods")).items()}
            async with asyncio.timeout(120):
                for verifier in (*verifiers, sleeper):
                    while verifier.steps != final:  # noqa: ASYNC110 - of another task
                        await asyncio.sleep(0.05)
            for task in running:
                task.cancel()
        left = await server.ask("cost")

    delays = [delay for verifier in verifiers for delay in verifier.delays]
    cpu = after["cpu_seconds"] - before["cpu_seconds"]
    print(  # noqa: T201 - the figures
        f"\n{PODS} pods, {CLIENTS} clients and a sleeper, {done} changes in {SECONDS} s:"
        f" {sent / 1e6:.0f} MB sent"
        f"\n  initial state to all, {sizes / 1e6:.0f} MB, in {initial:.1f} s,"
        f" {before['cpu_seconds'] - alone['cpu_seconds']:.1f} s of CPU"
        f"\n  server: {100 * cpu / SECONDS:.0f} % of a core,"
        f" {1e6 * cpu / done / CLIENTS:.0f} us a change and client"
        f"\n  memory: {alone['rss_mb']:.0f} MB alone, {before['rss_mb']:.0f} with clients,"
        f" {after['rss_mb']:.0f} after the load, {left['peak_mb']:.0f} at most,"
        f" {left['rss_mb']:.0f} at the end"
        f"\n  delay: median {1e3 * statistics.median(delays):.0f} ms,"
        f" 99 % {1e3 * statistics.quantiles(delays, n=100)[98]:.0f} ms"
        f"\n  the sleeper: {sleeper.cuts}, {sleeper.connections} connections"
    )
    assert done >= SECONDS * RATE
    assert [fault for verifier in (*verifiers, sleeper) for fault in verifier.faults] == []
    assert {verifier.connections for verifier in verifiers} == {1}
    assert sleeper.cuts == [
        f"the client has read nothing for {WatchLimits().stall_seconds:g} s; reconnect to resume"
    ]
    assert sleeper.connections == 2
    assert left["peak_mb"] - alone["rss_mb"] < MAX_MEGABYTES * CLIENTS


@asynccontextmanager
async def sessions(where: dict[str, str]) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(
        limit=0, ssl=ssl.create_default_context(cafile=where["certificate"])
    )
    async with aiohttp.ClientSession(
        where["url"], connector=connector, timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        yield session
