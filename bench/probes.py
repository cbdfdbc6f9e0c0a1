"""The cost of probing 110 process pods once a second, and the latency of a change in the API.

The pods are processes of the released agent, each with a shim. The targets of their probes are in
this process, so the time at which a probe first got the new result is known: a request has another
response, or a connection is accepted again. A refused connection cannot be observed; it is assumed
one second after the last accepted one. An independent watch shows when Ready follows. Finally,
fewer exec probes are measured with their cost outside of the agent: each is a process.
"""

import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from node import Cost, Watched, watching
from podstatus.client import PODS, ApiClient

RESULTS = Path(__file__).parent / "results" / "probes.json"
PODS_THERE = 110
SECONDS = 60.0
FLIPS_PER_SECOND = 11.0
EXEC_PERIOD = 10
AT_MOST = {"p99_ms": 500.0, "cpu_percent": 25.0}
_PERIOD_NANOS = 1_000_000_000
_PATIENCE_NANOS = 5 * _PERIOD_NANOS
_READY_SECONDS = 180.0
_RESPONSES = {
    True: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    False: b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy",
}


class Targets:
    """The targets of the probes. Flips them, and records when a probe first got the new result."""

    def __init__(self) -> None:
        self.healthy = [True] * PODS_THERE
        self.ports = [0] * PODS_THERE
        self.results: list[tuple[int, int, bool]] = []
        """Time of a probe's first new result, number of the pod, and the result."""
        self._unprobed: set[int] = set()
        self._probed_at = [0] * PODS_THERE
        self._servers: dict[int, asyncio.Server] = {}
        self.port = 0
        """Port of the server for all HTTP probes."""

    async def open(self) -> None:
        """Start to listen for probes."""
        server = await asyncio.start_server(self._respond, "127.0.0.1", 0, backlog=512)
        self._servers[-1] = server
        self.port = int(server.sockets[0].getsockname()[1])
        for number in range(PODS_THERE):
            await self._listen(number)

    def close(self) -> None:
        """Close the servers of all targets."""
        for server in self._servers.values():
            server.close()

    async def flip_http(self, number: int) -> None:
        """Change the response for a pod."""
        self.healthy[number] = not self.healthy[number]
        self._unprobed.add(number)

    async def flip_tcp(self, number: int) -> None:
        """Refuse connections for a pod, or accept them again."""
        self.healthy[number] = not self.healthy[number]
        if self.healthy[number]:
            await self._listen(number)
            self._unprobed.add(number)
            return
        self._servers.pop(number).close()
        self.results.append((self._probed_at[number] + _PERIOD_NANOS, number, False))

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            if not line:  # closed without a request
                return
            number = int(line.split()[1][1:])
            await reader.readuntil(b"\r\n\r\n")
            self._record_probe(number)
            writer.write(_RESPONSES[self.healthy[number]])
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _listen(self, number: int) -> None:
        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._record_probe(number)
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", self.ports[number])
        self.ports[number] = int(server.sockets[0].getsockname()[1])
        self._servers[number] = server

    def _record_probe(self, number: int) -> None:
        self._probed_at[number] = now = time.time_ns()
        if number in self._unprobed:
            self._unprobed.discard(number)
            self.results.append((now, number, self.healthy[number]))


def pod(number: int, probe: dict[str, object]) -> bytes:
    """Return a sleeping pod with this readiness probe."""
    probe = {"failureThreshold": 1, "periodSeconds": 1, "timeoutSeconds": 1, **probe}
    container = {
        "name": "app",
        "image": "none",
        "command": ["sleep", "100000"],
        "readinessProbe": probe,
    }
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}"},
            "spec": {
                "nodeName": "node-a",
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
            },
        }
    )


def probe(kind: str, number: int, targets: Targets) -> dict[str, object]:
    """Return the probe of this kind for a pod."""
    if kind == "http":
        return {"httpGet": {"host": "127.0.0.1", "port": targets.port, "path": f"/{number}"}}
    if kind == "tcp":
        return {"tcpSocket": {"host": "127.0.0.1", "port": targets.ports[number]}}
    return {"exec": {"command": ["true"]}, "periodSeconds": EXEC_PERIOD, "timeoutSeconds": 5}


@contextmanager
def running_agent(root: str) -> Iterator[psutil.Process]:
    """Run the released agent with its own API server; yield the process that probes."""
    command = [sys.executable, "-m", "podstatus.cli", "run", "--root-dir", root, "--port", "0"]
    command += ["--runtime", "process", "--no-samples", "--hostname-override", "node-a"]
    command += ["--node-capacity", "cpu=100,memory=500Gi"]
    with Path(root, "agent.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield psutil.Process(_agent_pid(root, process))
    finally:
        process.terminate()
        process.wait(20)


def _agent_pid(root: str, process: "subprocess.Popen[bytes]") -> int:
    endpoints = Path(root, "endpoints.json")
    deadline = time.monotonic() + _READY_SECONDS
    while not endpoints.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(Path(root, "agent.log").read_text())
        time.sleep(0.1)
    return int(json.loads(endpoints.read_text())["pid"])


async def bring(client: ApiClient, watched: Watched, kind: str, targets: Targets) -> dict[str, int]:
    """Create the pods, wait until all are ready, and return their numbers by UID."""
    numbers: dict[str, int] = {}
    for number in range(PODS_THERE):
        body = pod(number, probe(kind, number, targets))
        created = json.loads(await client.create(PODS, body, namespace="default"))
        numbers[created["metadata"]["uid"]] = number
        await asyncio.sleep(0.1)
    deadline = time.monotonic() + _READY_SECONDS
    while sum(watched.pods.values()) < PODS_THERE:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {sum(watched.pods.values())} pods became ready")
        await asyncio.sleep(0.1)
    return numbers


async def clear(client: ApiClient, watched: Watched) -> None:
    """Delete all pods, and wait until they are gone."""
    for number in range(PODS_THERE):
        await client.delete(PODS, f"pod-{number}", namespace="default")
    deadline = time.monotonic() + _READY_SECONDS
    while watched.pods:
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(watched.pods)} pods were not deleted")
        await asyncio.sleep(0.1)


async def flips(kind: str, targets: Targets) -> None:
    """Flip one target after another, in random order, for `SECONDS`."""
    rng = random.Random(9)  # noqa: S311 - not a secret
    flip = targets.flip_http if kind == "http" else targets.flip_tcp
    until = time.monotonic() + SECONDS
    order: list[int] = []
    while time.monotonic() < until:
        order = order or rng.sample(range(PODS_THERE), PODS_THERE)
        await flip(order.pop())
        await asyncio.sleep(1 / FLIPS_PER_SECOND)


def lateness(targets: Targets, watched: Watched, numbers: dict[str, int]) -> list[float]:
    """Return the seconds from each probe's first new result until the watch showed it."""
    flips = {numbers[uid]: times for uid, times in watched.flips.items() if uid in numbers}
    latencies = []
    for at, number, ready in targets.results:
        later = [
            t for t, r in flips.get(number, []) if r is ready and at <= t < at + _PATIENCE_NANOS
        ]
        # A refusal is assumed one period after the last response: it may have been earlier.
        early = [t for t, r in flips.get(number, []) if r is ready and at - _PERIOD_NANOS < t < at]
        latencies.append(0.0 if early else (later[0] - at) / 1e9 if later else float("inf"))
    return latencies


async def measure_flips(
    client: ApiClient, watched: Watched, process: psutil.Process, kind: str
) -> dict[str, float]:
    """Measure the cost of HTTP or TCP probes, and the latency of their changes."""
    targets = Targets()
    await targets.open()
    numbers = await bring(client, watched, kind, targets)
    await asyncio.sleep(5)
    cost = Cost(process)
    await asyncio.sleep(SECONDS / 2)
    figures = {f"{kind}_quiet_cpu_percent": cost.cpu_percent()}
    cost = Cost(process)
    await flips(kind, targets)
    figures[f"{kind}_cpu_percent"] = cost.cpu_percent()
    await asyncio.sleep(2)
    latencies = lateness(targets, watched, numbers)
    figures[f"{kind}_changes"] = float(len(latencies))
    figures[f"{kind}_median_ms"] = 1e3 * statistics.median(latencies)
    figures[f"{kind}_p99_ms"] = 1e3 * statistics.quantiles(latencies, n=100)[98]
    await clear(client, watched)
    targets.close()
    return figures


async def measure_exec(
    client: ApiClient, watched: Watched, process: psutil.Process
) -> dict[str, float]:
    """Measure the cost of exec probes with a period of 10 s: the agent, and the whole machine."""
    await bring(client, watched, "exec", Targets())
    await asyncio.sleep(5)
    cost, before = Cost(process), psutil.cpu_times()
    began = time.monotonic()
    await asyncio.sleep(SECONDS)
    after, passed = psutil.cpu_times(), time.monotonic() - began
    busy = sum(after[:3]) - sum(before[:3])
    figures = {
        "exec_per_second": PODS_THERE / EXEC_PERIOD,
        "exec_cpu_percent": cost.cpu_percent(),
        "exec_machine_percent_of_a_core": 100 * busy / passed,
    }
    await clear(client, watched)
    return figures


async def measure(root: str, process: psutil.Process) -> dict[str, float]:
    """Measure one kind of probe after another."""
    figures: dict[str, float] = {}
    async with watching(root) as (client, watched):
        for kind in ("http", "tcp"):
            print(kind, file=sys.stderr)
            figures |= await measure_flips(client, watched, process, kind)
        print("exec", file=sys.stderr)
        figures |= await measure_exec(client, watched, process)
    return figures


def main() -> None:
    """Measure, print a table and write the figures."""
    with tempfile.TemporaryDirectory() as root, running_agent(root) as process:
        figures = asyncio.run(measure(root, process))
    print(f"{'':<34}{'seen':>10}{'at most':>10}")
    for name, value in figures.items():
        maximum = "" if name.startswith("exec") else AT_MOST.get(name.partition("_")[2], "")
        print(f"{name:<34}{value:>10.2f}{maximum:>10}".rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
