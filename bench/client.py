"""What the client costs, in CPU of the process that uses it, next to bare aiohttp.

The embedded API server has a process of its own, and so have those who write while this one
watches. Everything goes over TLS. Bare loop and client take turns, and the medians of the rounds
are compared.
"""

import asyncio
import json
import multiprocessing
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import msgspec

from podstatus import Pod
from podstatus.client import PODS, ApiClient, Reflector, kubeconfig_access
from podstatus.client.request import STRATEGIC_MERGE
from podstatus.testing.apiserver import ApiAccess, ApiServerProcess

RESULTS = Path(__file__).parent / "results" / "client.json"
PODS_THERE = 100
ROUNDS = 7
PATCHES = 1_000
"""In one round."""
SENDERS = 4
"""How many requests are under way at once."""
OBJECT_BYTES = 3_000
"""How large a pod is, about."""

LIMITS = {"patch_ratio": 1.3, "event_us": 50.0}

_SPAWN = multiprocessing.get_context("spawn")

Send = Callable[[str, bytes], Awaitable[object]]


def pod(number: int) -> dict[str, object]:
    """A pod on a node, filled up to its size."""
    spec = {"nodeName": "n1", "containers": [{"name": "app", "image": "app:1"}]}
    filling = {"bench.example.com/filling": "x" * (OBJECT_BYTES - 1_100)}
    return {"metadata": {"name": f"pod-{number}", "annotations": filling}, "spec": spec}


def flip(turn: int) -> tuple[str, bytes]:
    """The name of a pod, and a patch that changes something of it each time around."""
    status = "True" if turn // PODS_THERE % 2 else "False"
    condition = {"type": "Ready", "status": status, "reason": "ContainersNotReady"}
    body = {"status": {"phase": "Running", "conditions": [condition]}}
    return f"pod-{turn % PODS_THERE}", msgspec.json.encode(body)


async def spend(send: Send, turns: range) -> float:
    """CPU microseconds per request of this process."""
    waiting = iter(turns)

    async def keep_sending() -> None:
        for turn in waiting:
            await send(*flip(turn))

    begin = time.process_time()
    await asyncio.gather(*(keep_sending() for _ in range(SENDERS)))
    return (time.process_time() - begin) / len(turns) * 1e6


async def measure_patches(server: ApiAccess) -> dict[str, float]:
    """What a patch costs, bare and through the client."""
    context = ssl.create_default_context(cafile=str(server.authority))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": STRATEGIC_MERGE}
    bare: list[float] = []
    ours: list[float] = []
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        ApiClient(kubeconfig_access(server.kubeconfig)) as client,
    ):

        async def send_bare(name: str, body: bytes) -> None:
            url = f"{server.url}/api/v1/namespaces/default/pods/{name}/status"
            async with session.patch(url, data=body, headers=headers) as response:
                response.raise_for_status()
                await response.read()

        async def send_ours(name: str, body: bytes) -> None:
            await client.patch(PODS, name, body, namespace="default", subresource="status")

        turns = iter(range(0, 10 * ROUNDS * PATCHES, PATCHES))
        for number in range(ROUNDS):
            for send, spent in ((send_bare, bare), (send_ours, ours)):
                begin = next(turns)
                spent.append(await spend(send, range(begin, begin + PATCHES)))
            print(f"patches: round {number + 1} of {ROUNDS}", file=sys.stderr)
    figures = {"bare_patch_us": statistics.median(bare), "patch_us": statistics.median(ours)}
    return figures | {"patch_ratio": figures["patch_us"] / figures["bare_patch_us"]}


async def _write(kubeconfig: str, orders: Connection) -> None:
    async with ApiClient(kubeconfig_access(Path(kubeconfig))) as client:

        async def send(name: str, body: bytes) -> None:
            await client.patch(PODS, name, body, namespace="default", subresource="status")

        while (begin := await asyncio.to_thread(orders.recv)) is not None:
            await spend(send, range(begin, begin + PATCHES))


def write(kubeconfig: str, orders: Connection) -> None:
    """The process of those who write, a round for each order."""
    asyncio.run(_write(kubeconfig, orders))


class Count:
    """A handler that counts changes, and can be waited for."""

    def __init__(self) -> None:
        self._seen = 0
        self._enough = 0
        self._reached = asyncio.Event()

    def __call__(self, _: object) -> None:
        """One more."""
        self._seen += 1
        if self._seen == self._enough:
            self._reached.set()

    def expect(self, more: int) -> None:
        """Set how many more are to be waited for."""
        self._reached.clear()
        self._enough = self._seen + more

    async def reached(self) -> None:
        """Come back when they were seen."""
        await self._reached.wait()


async def measure_events(server: ApiAccess) -> dict[str, float]:
    """What an event costs, from the socket to a handler that counts."""
    count = Count()
    orders, taken = _SPAWN.Pipe()
    writer = _SPAWN.Process(target=write, args=(str(server.kubeconfig), taken), daemon=True)
    writer.start()
    spent: list[float] = []
    async with ApiClient(kubeconfig_access(server.kubeconfig)) as client:
        size = len(await client.get(PODS, "pod-0", namespace="default"))
        reflector = Reflector(client, PODS, Pod, count)
        watching = asyncio.create_task(reflector.run())
        await reflector.wait_synced()
        for number in range(ROUNDS + 1):
            count.expect(PATCHES)
            begin = time.process_time()
            orders.send(number * PATCHES)
            await count.reached()
            spent.append((time.process_time() - begin) / PATCHES * 1e6)
            print(f"events: round {number} of {ROUNDS}", file=sys.stderr)
        watching.cancel()
    orders.send(None)
    writer.join()
    # The first round warms up both sides.
    return {"event_us": statistics.median(spent[1:]), "event_bytes": float(size)}


def main() -> None:
    """Measure, print a table and write the figures."""
    with tempfile.TemporaryDirectory() as folder:
        process = ApiServerProcess(Path(folder))
        server = process.start()
        try:
            for number in range(PODS_THERE):
                server.request("POST", "/api/v1/namespaces/default/pods", pod(number))
            figures = asyncio.run(measure_patches(server)) | asyncio.run(measure_events(server))
        finally:
            process.stop()
    print(f"{'':<26}{'seen':>12}{'at most':>10}")
    for name, value in figures.items():
        print(f"{name:<26}{value:>12.2f}{LIMITS.get(name) or '':>10}".rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
