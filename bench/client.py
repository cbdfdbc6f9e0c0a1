"""The CPU cost of the client in its process, compared with bare aiohttp.

Patches go to the embedded API server, events come from a server with prepared ones; both run in
separate processes, with TLS. Rounds of the bare loop and of the client are interleaved, and their
medians are compared. (With a server that produces the events and a writer, three processes on two
cores, an event took 35-55 us bare and 70-110 us through the client.)
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
from pathlib import Path

import aiohttp
import msgspec

from canned_events import CannedServer, serve
from podstatus import Pod
from podstatus.client import PODS, ApiClient, Reflector, kubeconfig_config, token_config
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.rest.request import STRATEGIC_MERGE
from podstatus.testing.apiserver import ApiAccess, ApiServerProcess

RESULTS = Path(__file__).parent / "results" / "client.json"
PODS_THERE = 100
ROUNDS = 7
PATCHES = 1_000
"""Patches in one round."""
EVENTS = 5_000
"""Events in one round."""
SENDERS = 4
"""Requests in flight."""
OBJECT_BYTES = 3_000
"""Approximate size of a pod."""

LIMITS = {"patch_ratio": 1.3, "event_us": 50.0}

_SPAWN = multiprocessing.get_context("spawn")

Send = Callable[[str, bytes], Awaitable[object]]


def pod(number: int) -> dict[str, object]:
    """Return a pod on a node, padded to `OBJECT_BYTES`."""
    spec = {"nodeName": "n1", "containers": [{"name": "app", "image": "app:1"}]}
    filling = {"bench.example.com/filling": "x" * (OBJECT_BYTES - 500)}
    return {"metadata": {"name": f"pod-{number}", "annotations": filling}, "spec": spec}


def flip(turn: int) -> tuple[str, bytes]:
    """Return the name of a pod, and a patch that changes it in every cycle."""
    status = "True" if turn // PODS_THERE % 2 else "False"
    condition = {"type": "Ready", "status": status, "reason": "ContainersNotReady"}
    body = {"status": {"phase": "Running", "conditions": [condition]}}
    return f"pod-{turn % PODS_THERE}", msgspec.json.encode(body)


async def spend(send: Send, turns: range) -> float:
    """Return the CPU microseconds per request of this process."""
    waiting = iter(turns)

    async def keep_sending() -> None:
        for turn in waiting:
            await send(*flip(turn))

    begin = time.process_time()
    await asyncio.gather(*(keep_sending() for _ in range(SENDERS)))
    return (time.process_time() - begin) / len(turns) * 1e6


async def measure_patches(server: ApiAccess) -> dict[str, float]:
    """Measure the cost of a patch, bare and through the client."""
    context = ssl.create_default_context(cafile=str(server.authority))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": STRATEGIC_MERGE}
    bare: list[float] = []
    ours: list[float] = []
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        ApiClient(kubeconfig_config(server.kubeconfig)) as client,
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


class Count:
    """A handler that counts the changes of a round: all pods are added, then changed."""

    def __init__(self) -> None:
        self._left = PODS_THERE + EVENTS
        self.reached = asyncio.Event()

    def __call__(self, _: object) -> None:
        """Count one change."""
        self._left -= 1
        if self._left == 0:
            self.reached.set()


async def watch_bare(session: aiohttp.ClientSession, server: str) -> float:
    """Return the CPU microseconds per event for only reading it."""
    begin = time.process_time()
    async with session.get(f"{server}/api/v1/pods?watch=1") as response:
        events = 0
        while events < EVENTS:
            # Each event ends with the only newline in it.
            events += (await response.content.readany()).count(b"\n")
    return (time.process_time() - begin) / EVENTS * 1e6


async def watch_ours(client: ApiClient) -> float:
    """Return the CPU microseconds per event from the socket to a handler."""
    count = Count()
    begin = time.process_time()
    watching = asyncio.create_task(Reflector(client, ObjectSelection(PODS), Pod, count).run())
    await count.reached.wait()
    spent = (time.process_time() - begin) / EVENTS * 1e6
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return spent


async def measure_events(port: int, authority: str) -> dict[str, float]:
    """Measure the cost of an event, bare and through a reflector, with connect and list."""
    server = f"https://127.0.0.1:{port}"
    context = ssl.create_default_context(cafile=authority)
    connector = aiohttp.TCPConnector(ssl=context, force_close=True)
    bare, ours = [], []
    async with (
        ApiClient(token_config(server, "any", authority)) as client,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        for number in range(ROUNDS):
            bare.append(await watch_bare(session, server))
            ours.append(await watch_ours(client))
            print(f"events: round {number + 1} of {ROUNDS}", file=sys.stderr)
    return {
        "bare_event_us": statistics.median(bare),
        "event_us": statistics.median(ours),
        "event_bytes": float(len(CannedServer(pod, 1, 1).events[0])),
    }


def measure_canned(folder: str) -> dict[str, float]:
    """Measure the cost of events, with the server in a separate process."""
    receive, send = _SPAWN.Pipe(duplex=False)
    arguments = (pod, PODS_THERE, EVENTS, folder, send)
    process = _SPAWN.Process(target=serve, args=arguments, daemon=True)
    process.start()
    try:
        return asyncio.run(measure_events(*receive.recv()))
    finally:
        process.terminate()
        process.join()


def measure_served(folder: str) -> dict[str, float]:
    """Measure the cost of patches, with the embedded server in a separate process."""
    process = ApiServerProcess(Path(folder))
    server = process.start()
    try:
        for number in range(PODS_THERE):
            server.request("POST", "/api/v1/namespaces/default/pods", pod(number))
        return asyncio.run(measure_patches(server))
    finally:
        process.stop()


def main() -> None:
    """Measure, print a table and write the figures."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        figures = measure_served(one) | measure_canned(other)
    print(f"{'':<26}{'seen':>12}{'at most':>10}")
    for name, value in figures.items():
        print(f"{name:<26}{value:>12.2f}{LIMITS.get(name) or '':>10}".rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
