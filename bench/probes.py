"""What probing 110 process pods once a second costs, and how late a change is in the API.

The pods are processes of the agent as it ships, each with a shim; what their probes ask is here,
so that the moment is known at which a probe was first told the news: a request is answered
otherwise than before, a connection comes again. For a connection that is refused, which nobody
sees, it is a second after the last that was not. An independent watch says when Ready follows.
Last, fewer exec probes, with what they cost outside of the agent: each is a process.
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
_ANSWERS = {
    True: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    False: b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy",
}


class Targets:
    """What the probes ask. Turns one around now and then, and notes when a probe heard of it."""

    def __init__(self) -> None:
        self.healthy = [True] * PODS_THERE
        self.ports = [0] * PODS_THERE
        self.heard: list[tuple[int, int, bool]] = []
        """When a probe was first told of a change; which pod; and what."""
        self._news: set[int] = set()
        self._asked = [0] * PODS_THERE
        self._servers: dict[int, asyncio.Server] = {}
        self.port = 0
        """Of the one server for all HTTP probes."""

    async def open(self) -> None:
        """Begin to listen."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=512)
        self._servers[-1] = server
        self.port = int(server.sockets[0].getsockname()[1])
        for number in range(PODS_THERE):
            await self._listen(number)

    def close(self) -> None:
        """Listen no more."""
        for server in self._servers.values():
            server.close()

    async def flip_http(self, number: int) -> None:
        """Answer otherwise from now on."""
        self.healthy[number] = not self.healthy[number]
        self._news.add(number)

    async def flip_tcp(self, number: int) -> None:
        """Refuse connections, or take them again."""
        self.healthy[number] = not self.healthy[number]
        if self.healthy[number]:
            await self._listen(number)
            self._news.add(number)
            return
        self._servers.pop(number).close()
        self.heard.append((self._asked[number] + _PERIOD_NANOS, number, False))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            if not line:  # somebody who has changed his mind
                return
            number = int(line.split()[1][1:])
            await reader.readuntil(b"\r\n\r\n")
            self._was_asked(number)
            writer.write(_ANSWERS[self.healthy[number]])
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _listen(self, number: int) -> None:
        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._was_asked(number)
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", self.ports[number])
        self.ports[number] = int(server.sockets[0].getsockname()[1])
        self._servers[number] = server

    def _was_asked(self, number: int) -> None:
        self._asked[number] = now = time.time_ns()
        if number in self._news:
            self._news.discard(number)
            self.heard.append((now, number, self.healthy[number]))


def pod(number: int, probe: dict[str, object]) -> bytes:
    """A pod that sleeps, and has this readiness probe."""
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
    """The probe of this kind, of this pod."""
    if kind == "http":
        return {"httpGet": {"host": "127.0.0.1", "port": targets.port, "path": f"/{number}"}}
    if kind == "tcp":
        return {"tcpSocket": {"host": "127.0.0.1", "port": targets.ports[number]}}
    return {"exec": {"command": ["true"]}, "periodSeconds": EXEC_PERIOD, "timeoutSeconds": 5}


@contextmanager
def running_agent(root: str) -> Iterator[psutil.Process]:
    """The agent as it ships, with its own API server; the process that probes."""
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
    told = Path(root, "endpoints.json")
    deadline = time.monotonic() + _READY_SECONDS
    while not told.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(Path(root, "agent.log").read_text())
        time.sleep(0.1)
    return int(json.loads(told.read_text())["pid"])


async def bring(client: ApiClient, watched: Watched, kind: str, targets: Targets) -> dict[str, int]:
    """Create the pods and wait until all of them are ready; their numbers by UID."""
    numbers: dict[str, int] = {}
    for number in range(PODS_THERE):
        body = pod(number, probe(kind, number, targets))
        made = json.loads(await client.create(PODS, body, namespace="default"))
        numbers[made["metadata"]["uid"]] = number
        await asyncio.sleep(0.1)
    deadline = time.monotonic() + _READY_SECONDS
    while sum(watched.pods.values()) < PODS_THERE:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {sum(watched.pods.values())} pods became ready")
        await asyncio.sleep(0.1)
    return numbers


async def clear(client: ApiClient, watched: Watched) -> None:
    """Delete them, a few at a time."""
    for number in range(PODS_THERE):
        await client.delete(PODS, f"pod-{number}", namespace="default")
    deadline = time.monotonic() + _READY_SECONDS
    while watched.pods:
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(watched.pods)} pods were never gone")
        await asyncio.sleep(0.1)


async def flips(kind: str, targets: Targets) -> None:
    """Turn one after the other around, in a random order, until the time is over."""
    chance = random.Random(9)  # noqa: S311 - not a secret
    turn = targets.flip_http if kind == "http" else targets.flip_tcp
    until = time.monotonic() + SECONDS
    order: list[int] = []
    while time.monotonic() < until:
        order = order or chance.sample(range(PODS_THERE), PODS_THERE)
        await turn(order.pop())
        await asyncio.sleep(1 / FLIPS_PER_SECOND)


def lateness(targets: Targets, watched: Watched, numbers: dict[str, int]) -> list[float]:
    """How many seconds after a probe heard of a change the watch saw it."""
    seen = {numbers[uid]: told for uid, told in watched.flips.items() if uid in numbers}
    taken = []
    for at, number, ready in targets.heard:
        later = [
            t for t, r in seen.get(number, []) if r is ready and at <= t < at + _PATIENCE_NANOS
        ]
        # A refusal is guessed to be a period after the last answer: it may have come earlier.
        early = [t for t, r in seen.get(number, []) if r is ready and at - _PERIOD_NANOS < t < at]
        taken.append(0.0 if early else (later[0] - at) / 1e9 if later else float("inf"))
    return taken


async def measure_flips(
    client: ApiClient, watched: Watched, process: psutil.Process, kind: str
) -> dict[str, float]:
    """What HTTP or TCP probes cost, and how late their news are."""
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
    taken = lateness(targets, watched, numbers)
    figures[f"{kind}_changes"] = float(len(taken))
    figures[f"{kind}_median_ms"] = 1e3 * statistics.median(taken)
    figures[f"{kind}_p99_ms"] = 1e3 * statistics.quantiles(taken, n=100)[98]
    await clear(client, watched)
    targets.close()
    return figures


async def measure_exec(
    client: ApiClient, watched: Watched, process: psutil.Process
) -> dict[str, float]:
    """What exec probes cost, ten seconds apart: the agent, and the whole machine."""
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
    """One kind of probe after the other."""
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
        most = "" if name.startswith("exec") else AT_MOST.get(name.partition("_")[2], "")
        print(f"{name:<34}{value:>10.2f}{most:>10}".rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
