"""The cost of the default rules in an observer: 5,000 pods, 200 nodes, 100 changes a second.

Two observers follow the same embedded API server, one of them with --no-alerts: the difference is
the cost of the rules. Measured is the CPU time of each process and its children, as a fraction of a
core. A change is a container that becomes ready or unready; each node renews its lease every 10 s.
One pod in fifty is in a crash loop.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import psutil

from podstatus.client import ApiClient
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.rest.request import MERGE
from podstatus.client.rest.resources import LEASES, NODES, PODS, ApiResource
from podstatus.kube.scalars.time import MicroTime
from podstatus.testing.apiserver import ApiServerProcess

RESULTS = Path(__file__).parent / "results" / "alerts_cluster.json"
POD_COUNT, NODE_COUNT = 5_000, 200
CHANGES_A_SECOND = 100
LEASE_SECONDS = 10
WARM_SECONDS, SECONDS = 15.0, 30.0
MAX_PERCENT = 10.0
LEASE_NAMESPACE = "kube-node-lease"
_CONCURRENT = 16
Document = dict[str, Any]


def node(number: int) -> Document:
    """Return a node that is Ready."""
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number:03}", "labels": {"zone": f"z{number % 3}"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady"},
                *(
                    {"type": f"{what}Pressure", "status": "False"}
                    for what in ("Memory", "Disk", "PID")
                ),
            ],
        },
    }


def pod(number: int) -> Document:
    """Return a pod of a node."""
    requests = {"cpu": "50m", "memory": "64Mi"}
    return {
        "metadata": {"name": f"web-{number:04}", "labels": {"app": "web", "team": "shop"}},
        "spec": {
            "nodeName": f"node-{number % NODE_COUNT:03}",
            "containers": [{"name": "app", "image": "web:1", "resources": {"requests": requests}}],
        },
    }


def pod_status(number: int, change: int) -> Document:
    """Return the status of a pod after so many changes."""
    crashes, ready = number % 50 == 0, change % 2 == 0 and number % 50 != 0
    state: Document = {"running": {"startedAt": "2026-11-19T00:00:00Z"}}
    if crashes:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    since = MicroTime.from_unix_nanos(time.time_ns() // 10**9 * 10**9).wire[:19] + "Z"  # type: ignore[index]
    status = "True" if ready else "False"
    return {
        "phase": "Running",
        "startTime": "2026-11-19T00:00:00Z",
        "conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": since},
            {"type": "ContainersReady", "status": status, "lastTransitionTime": since},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [
            {
                "name": "app",
                "image": "web:1",
                "imageID": "",
                "ready": ready,
                "restartCount": 5 if crashes else 0,
                "state": state,
            }
        ],
    }


class Cluster:
    """Writes the objects of the cluster."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._limit = asyncio.Semaphore(_CONCURRENT)

    async def fill(self) -> None:
        """Create all objects."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(NODE_COUNT):
                tasks.create_task(self._create(NODES, node(number)))
        async with asyncio.TaskGroup() as tasks:
            for number in range(POD_COUNT):
                tasks.create_task(self._create_pod(number))
        # Last, so that none is late when the observers start.
        async with asyncio.TaskGroup() as tasks:
            for number in range(NODE_COUNT):
                tasks.create_task(self._create(LEASES, _lease(number), LEASE_NAMESPACE))

    async def change(self) -> None:
        """Change pods and renew leases, evenly, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(CHANGES_A_SECOND, self._change_pod))
            tasks.create_task(self._repeat(NODE_COUNT / LEASE_SECONDS, self._renew))

    async def _repeat(
        self, per_second: float, act: Callable[[int], Coroutine[Any, Any, None]]
    ) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for done in count():
                await asyncio.sleep(max(0.0, began + done / per_second - time.monotonic()))
                tasks.create_task(act(done))

    async def _change_pod(self, done: int) -> None:
        await self._set_status(done * 7 % POD_COUNT, done)

    async def _create(self, kind: ApiResource, body: Document, namespace: str = "") -> None:
        async with self._limit:
            await self._client.create(kind, msgspec.json.encode(body), namespace=namespace or None)
            if "status" in body:
                await self._client.patch(
                    kind,
                    body["metadata"]["name"],
                    msgspec.json.encode({"status": body["status"]}),
                    subresource="status",
                    content_type=MERGE,
                )

    async def _create_pod(self, number: int) -> None:
        await self._create(PODS, pod(number), "default")
        await self._set_status(number, 0)

    async def _set_status(self, number: int, change: int) -> None:
        body = msgspec.json.encode({"status": pod_status(number, change)})
        async with self._limit:
            await self._client.patch(
                PODS,
                f"web-{number:04}",
                body,
                namespace="default",
                subresource="status",
                content_type=MERGE,
            )

    async def _renew(self, done: int) -> None:
        spec = {"spec": {"renewTime": MicroTime.from_unix_nanos(time.time_ns()).wire}}
        name = f"node-{done % NODE_COUNT:03}"
        async with self._limit:
            await self._client.patch(
                LEASES,
                name,
                msgspec.json.encode(spec),
                namespace=LEASE_NAMESPACE,
                content_type=MERGE,
            )


def _lease(number: int) -> Document:
    renewed = MicroTime.from_unix_nanos(time.time_ns()).wire
    return {
        "metadata": {"name": f"node-{number:03}"},
        "spec": {"holderIdentity": f"node-{number:03}", "renewTime": renewed},
    }


@contextmanager
def observer(folder: Path, kubeconfig: Path, *options: str) -> Iterator[psutil.Process]:
    """Run an observer; the body begins when it serves."""
    words = [sys.executable, "-m", "podstatus.cli", "observe", "--kubeconfig", str(kubeconfig)]
    words += ["--root-dir", str(folder), "--port", "0", "-v", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - stdout is a pipe
            process.stdout.readline()
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()


def cpu_seconds(process: psutil.Process) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of its children."""
    times = [it.cpu_times() for it in (process, *process.children(recursive=True))]
    own, *others = (it.user + it.system for it in times)
    return own, sum(others)


async def measure(cluster: Cluster, observers: list[psutil.Process]) -> list[tuple[float, float]]:
    """Return the CPU usage of each observer and its children, in percent of a core."""
    changing = asyncio.create_task(cluster.change())
    await asyncio.sleep(WARM_SECONDS)
    before = [cpu_seconds(it) for it in observers]
    began = time.monotonic()
    await asyncio.sleep(SECONDS)
    passed = time.monotonic() - began
    after = [cpu_seconds(it) for it in observers]
    changing.cancel()
    await asyncio.wait({changing})
    return [
        ((own - own_before) / passed * 100, (rest - rest_before) / passed * 100)
        for (own, rest), (own_before, rest_before) in zip(after, before, strict=True)
    ]


async def play(folder: Path) -> list[tuple[float, float]]:
    server = ApiServerProcess(folder / "server")
    try:
        access = server.start()
        async with ApiClient(kubeconfig_config(access.kubeconfig)) as client:
            cluster = Cluster(client)
            await cluster.fill()
            with ExitStack() as stack:
                observers = [
                    stack.enter_context(observer(folder / name, access.kubeconfig, *options))
                    for name, options in (("with", ()), ("without", ("--no-alerts",)))
                ]
                return await measure(cluster, observers)
    finally:
        server.stop()


def main() -> None:
    """Measure, print and store the figures."""
    with tempfile.TemporaryDirectory() as folder:
        (own, rules), (bare, _) = asyncio.run(play(Path(folder)))
    total = own + rules - bare
    print(
        f"observer with the default rules {own:.1f} %, evaluator process {rules:.1f} %, without "
        f"alerts {bare:.1f} %: the rules cost {total:.1f} % of a core (at most {MAX_PERCENT})"
    )
    figures = {"observer": own, "evaluator": rules, "without_alerts": bare, "rules": total}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    if total > MAX_PERCENT:
        raise SystemExit("above the limit")


if __name__ == "__main__":
    main()
