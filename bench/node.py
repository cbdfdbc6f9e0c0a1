"""The cost and latency of a node, with the embedded API server in a separate process.

*idle*: 110 pods without changes; CPU and memory of the agent. *busy*: each pod changes its
readiness once a second; the latency of a change from the runtime to an independent watch. *bursts*:
500 pods are created and deleted repeatedly. In all phases the lease is watched for late renewals.
The bounds are those of the issue; the cores are shared, so use the medians of several runs.
"""

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil

from podstatus import Pod, decode
from podstatus.client import LEASES, PODS, ApiClient, kubeconfig_config
from podstatus.kube.api_errors import ApiError
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.objects.cluster import Lease

RESULTS = Path(__file__).parent / "results" / "node.json"
PODS_THERE = 110
BURST = 500
IDLE_SECONDS = 60.0
BUSY_SECONDS = 60.0
BURST_SECONDS = 60.0
FLAPPING = "ready=+1s-1s*"
MAX_RENEW_SECONDS = 10 * 1.04
"""Maximum scheduled time between two renewals of the lease."""
AT_MOST = {
    "propagation_p99_ms": 500.0,
    "idle_cpu_percent": 3.0,
    "idle_memory_mb": 120.0,
    "lease_late_s": 2.0,
}
_START_SECONDS = 60.0


def pod(number: int, script: str = "") -> bytes:
    """Return a pod of this node whose simulated container follows the script."""
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{number}",
                "annotations": {"simulate.podstatus.dev/app": script},
            },
            "spec": {
                "nodeName": "node-a",
                "containers": [
                    {
                        "name": "app",
                        "image": "busybox:1.37",
                        "readinessProbe": {"exec": {"command": ["true"]}},
                    }
                ],
            },
        }
    )


class Watched:
    """The pods and renewals that an independent watch delivers."""

    def __init__(self) -> None:
        self.pods: dict[str, bool] = {}
        """Readiness by UID."""
        self.flips: defaultdict[str, list[tuple[int, bool]]] = defaultdict(list)
        self.renewals: list[int] = []

    async def follow_pods(self, client: ApiClient) -> None:
        """Record the changes of all pods."""
        async with client.watch(PODS, timeout_seconds=3_600) as events:
            async for event in events:
                now = time.time_ns()
                if event.type not in ("ADDED", "MODIFIED", "DELETED"):
                    continue
                self._see(decode(bytes(event.object), Pod), now, gone=event.type == "DELETED")

    async def follow_lease(self, client: ApiClient) -> None:
        """Record the renewals of the lease."""
        async with client.watch(LEASES, timeout_seconds=3_600) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    lease = decode(bytes(event.object), Lease)
                    if lease.spec.renew_time:
                        self.renewals.append(lease.spec.renew_time.unix_nanos())

    def _see(self, pod: Pod, now: int, *, gone: bool) -> None:
        if gone:
            self.pods.pop(pod.uid, None)
            return
        ready = is_condition_true(pod.status.conditions, READY)
        if self.pods.get(pod.uid) is not ready:
            self.flips[pod.uid].append((now, ready))
        self.pods[pod.uid] = ready

    async def until_ready(self, count: int) -> None:
        """Wait until `count` pods are ready."""
        await _until(lambda: sum(self.pods.values()) >= count, f"{count} pods did not become ready")

    async def until_gone(self) -> None:
        """Wait until no pod is left."""
        await _until(lambda: not self.pods, "pods were not deleted")

    def lateness(self) -> float:
        """Return the seconds by which the most delayed renewal was late."""
        gaps = [later - earlier for earlier, later in pairwise(self.renewals)]
        return max((gap / 1e9 - MAX_RENEW_SECONDS for gap in gaps), default=0.0)


async def _until(holds: Callable[[], bool], error: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(error)
        await asyncio.sleep(0.05)


class Cost:
    """CPU usage and memory of a process over a period."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._began = time.monotonic()
        self._cpu = self._seconds()

    def cpu_percent(self) -> float:
        """Return the CPU usage in percent of one core."""
        return 100 * (self._seconds() - self._cpu) / (time.monotonic() - self._began)

    def memory_mb(self) -> float:
        """Return the current resident memory in MiB."""
        return self._process.memory_info().rss / 2**20

    def _seconds(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


@contextmanager
def running_agent(root: str) -> Iterator[psutil.Process]:
    """Run the agent and its API server, in separate processes."""
    program = Path(__file__).parent / "peers" / "agent.py"
    process = subprocess.Popen([sys.executable, program, root], stdout=subprocess.PIPE)
    try:
        if process.stdout is None or not process.stdout.readline():
            raise SystemExit("the agent did not start; see its error above")
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(10)


@asynccontextmanager
async def watching(root: str) -> AsyncIterator[tuple[ApiClient, Watched]]:
    """Yield a client, and the pods and renewals that watches deliver."""
    access = kubeconfig_config(Path(root, "kubeconfig"), environment={})
    watched = Watched()
    async with ApiClient(access) as client, asyncio.TaskGroup() as tasks:
        follow = [
            tasks.create_task(watched.follow_pods(client)),
            tasks.create_task(watched.follow_lease(client)),
        ]
        yield client, watched
        for task in follow:
            task.cancel()


async def create(client: ApiClient, count: int, script: str = "") -> None:
    """Create pods, a few at a time."""
    limit = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with limit:
            await client.create(PODS, pod(number, script), namespace="default")

    await asyncio.gather(*map(one, range(count)))


async def delete(client: ApiClient, count: int) -> None:
    """Delete the pods gracefully, a few at a time."""
    limit = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with limit:
            with contextlib.suppress(ApiError):
                await client.delete(PODS, f"pod-{number}", namespace="default")

    await asyncio.gather(*map(one, range(count)))


def propagation(changes: Path, flips: dict[str, list[tuple[int, bool]]], since: int) -> list[float]:
    """Return the latency of each change in seconds; infinite if the next change overtook it."""
    results: defaultdict[str, list[tuple[int, bool]]] = defaultdict(list)
    for line in changes.read_text().splitlines():
        timestamp, uid, success = line.split()
        results[uid].append((int(timestamp), success == "1"))
    latencies = []
    for uid, changed in results.items():
        for (at, ready), (next_at, _) in pairwise(changed):
            if at < since:
                continue
            times = [t for t, r in flips.get(uid, []) if r is ready and at <= t < next_at + 10**9]
            latencies.append((times[0] - at) / 1e9 if times else float("inf"))
    return latencies


async def measure(root: str, process: psutil.Process) -> dict[str, float]:
    """Measure idle, busy and bursts, in this order."""
    figures: dict[str, float] = {}
    async with watching(root) as (client, watched):
        print("idle", file=sys.stderr)
        await create(client, PODS_THERE)
        await watched.until_ready(PODS_THERE)
        await asyncio.sleep(10)
        cost = Cost(process)
        await asyncio.sleep(IDLE_SECONDS)
        figures["idle_cpu_percent"] = cost.cpu_percent()
        figures["idle_memory_mb"] = cost.memory_mb()
        await delete(client, PODS_THERE)
        await watched.until_gone()

        print("busy", file=sys.stderr)
        await create(client, PODS_THERE, FLAPPING)
        await asyncio.sleep(10)
        since, cost = time.time_ns(), Cost(process)
        await asyncio.sleep(BUSY_SECONDS)
        figures["busy_cpu_percent"] = cost.cpu_percent()
        latencies = propagation(Path(root, "changes"), watched.flips, since)
        figures["changes"] = float(len(latencies))
        figures["propagation_median_ms"] = 1e3 * statistics.median(latencies)
        figures["propagation_p99_ms"] = 1e3 * statistics.quantiles(latencies, n=100)[98]
        await delete(client, PODS_THERE)
        await watched.until_gone()

        print("bursts", file=sys.stderr)
        began, bursts = time.monotonic(), 0
        while time.monotonic() - began < BURST_SECONDS:
            await create(client, BURST)
            await watched.until_ready(BURST)
            await delete(client, BURST)
            await watched.until_gone()
            bursts += 1
        figures["bursts"] = float(bursts)
        figures["seconds_per_burst"] = (time.monotonic() - began) / bursts
        figures["lease_renewals"] = float(len(watched.renewals))
        figures["lease_late_s"] = watched.lateness()
        figures["memory_mb"] = cost.memory_mb()
    return figures


def main() -> None:
    """Measure, print a table and write the figures."""
    with tempfile.TemporaryDirectory() as root, running_agent(root) as process:
        figures = asyncio.run(measure(root, process))
    print(f"{'':<26}{'seen':>12}{'at most':>10}")
    for name, value in figures.items():
        print(f"{name:<26}{value:>12.2f}{AT_MOST.get(name) or '':>10}".rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
