"""A contender, and the limit for all: a bare loop that sends the patches of a manager.

Nothing is decided, read first or remembered: what it does not reach, the server, the network and
the HTTP client do not allow. The patches are those that a status manager made of the same pods.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Iterator, Mapping

import aiohttp
from yarl import URL

from peers.node_pods import NothingRuns, flipped, is_ready, list_pods, way_in
from peers.orders import Flip, Lines, Report, Set, Start, Started
from podstatus import Pod, PodManager, StatusManager
from podstatus.client.api_client import ApiClient
from podstatus.client.rest.request import STRATEGIC_MERGE
from podstatus.client.rest.resources import PODS
from podstatus.testing.clock import FakeClock
from podstatus.testing.pod_api import InMemoryPodApi

Patch = tuple[URL, bytes]

_KEEP_ALIVE_SECONDS = 60.0
"""As podstatus' client has it."""


async def record_patches(pods: list[Pod], server: str) -> Mapping[bool, list[Patch]]:
    """What a manager sends to make all pods ready, and to make none ready."""
    directory = PodManager(pods)
    api = InMemoryPodApi(*pods, watcher=directory)
    clock = FakeClock()
    manager = StatusManager(api, directory, NothingRuns(), clock=clock)
    patches: dict[bool, list[Patch]] = {}
    now = is_ready(pods[0].status)
    for ready in (not now, now):
        # Otherwise the second flip would have the times of the first, and not send them.
        await clock.advance(1)
        for pod in directory.pods():
            manager.set_pod_status(pod, flipped(pod, ready=ready))
        await manager.sync_batch(full=False)
        patches[ready] = [
            (_url(server, call.namespace, call.name), call.patch)
            for call in api.calls
            if call.patch is not None
        ]
        api.calls.clear()
    return patches


def _url(server: str, namespace: str, name: str) -> URL:
    return URL(server + PODS.object(name, namespace, "status"), encoded=True)


class Loop:
    """Sends patches, each as soon as a connection is free."""

    def __init__(self, session: aiohttp.ClientSession, patches: Mapping[bool, list[Patch]]) -> None:
        self._session = session
        self._patches = patches
        self._sent = 0
        self._cpu_then = 0.0

    async def send(self, *, ready: bool, connections: int) -> None:
        """Send all patches over so many connections."""
        waiting = iter(self._patches[ready])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(connections):
                tasks.create_task(self._send(waiting))

    async def _send(self, waiting: Iterator[Patch]) -> None:
        for url, body in waiting:
            async with self._session.patch(url, data=body) as response:
                answer = await response.read()
            if response.status != 200:
                raise SystemExit(f"the server has refused: {answer.decode()}")
            self._sent += 1

    def began(self) -> Set:
        """A burst begins."""
        self._sent, self._cpu_then = 0, time.process_time()
        return Set(time.time_ns())

    def report(self) -> Report:
        """What it took so far."""
        return Report(time.process_time() - self._cpu_then, self._sent)


async def obey(lines: Lines, loop: Loop) -> None:
    """Do as told until nobody tells anything."""
    while (order := await lines.read(Flip)) is not None:
        if order.ready is not None:
            lines.write(loop.began())
            await loop.send(ready=order.ready, connections=order.connections)
        else:
            lines.write(loop.report())


async def main() -> None:
    """Be the limit."""
    lines = await Lines.open()
    start = await lines.read(Start)
    if start is None:
        return
    async with ApiClient(way_in(start)) as client:
        pods, _ = await list_pods(client, start.node)
    patches = await record_patches(pods, start.server)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            ssl=ssl.create_default_context(cafile=start.authority),
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={
            "Accept": "application/json",
            "Authorization": f"Bearer {start.token}",
            "Content-Type": STRATEGIC_MERGE,
        },
    ) as session:
        lines.write(Started(len(pods), is_ready(pods[0].status)))
        await obey(lines, Loop(session, patches))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
