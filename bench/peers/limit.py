"""The contender that is the limit for all others: a bare loop that sends a manager's patches.

It decides, reads and stores nothing, so its rate is the maximum of the server, the network and the
HTTP client. A status manager created the patches for the same pods beforehand.
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
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

Patch = tuple[URL, bytes]

_KEEP_ALIVE_SECONDS = 60.0
"""The same as in podstatus' client."""


async def record_patches(pods: list[Pod], server: str) -> Mapping[bool, list[Patch]]:
    """Return the patches of a manager that make all pods ready, and unready."""
    directory = PodManager(pods)
    api = InMemoryPodApi(*pods, watcher=directory)
    clock = FakeClock()
    manager = StatusManager(api, directory, NothingRuns(), clock=clock)
    patches: dict[bool, list[Patch]] = {}
    now = is_ready(pods[0].status)
    for ready in (not now, now):
        # Otherwise the second flip would have the same transition times, and not send them.
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
        """Send all patches over this many connections."""
        waiting = iter(self._patches[ready])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(connections):
                tasks.create_task(self._send(waiting))

    async def _send(self, waiting: Iterator[Patch]) -> None:
        for url, body in waiting:
            async with self._session.patch(url, data=body) as response:
                response_body = await response.read()
            if response.status != 200:
                raise SystemExit(f"the server returned an error: {response_body.decode()}")
            self._sent += 1

    def began(self) -> Set:
        """Reset the counters at the start of a burst."""
        self._sent, self._cpu_then = 0, time.process_time()
        return Set(time.time_ns())

    def report(self) -> Report:
        """Return the cost of the burst so far."""
        return Report(time.process_time() - self._cpu_then, self._sent)


async def obey(lines: Lines, loop: Loop) -> None:
    """Execute orders until the input ends."""
    while (order := await lines.read(Flip)) is not None:
        if order.ready is not None:
            lines.write(loop.began())
            await loop.send(ready=order.ready, connections=order.connections)
        else:
            lines.write(loop.report())


async def main() -> None:
    """Run the contender on standard input and output."""
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
