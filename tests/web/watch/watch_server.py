"""A server with many pods in a child process, which reports its CPU time and memory.

It takes one command a line, and answers with a line of JSON each: `cost`, `load SECONDS RATE`,
`pods`, and an empty line to stop.
"""

import asyncio
import random
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary
from podstatus.web.ports import ServerOptions
from tests.support.web.node_server import NODE, TOKEN, Scene

NOW = Time.parse("2026-11-15T12:00:00Z")
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def pod_at(number: int, step: int) -> PodSummary:
    """A pod of typical size; clients check its message (a counter) and its reason (a time)."""
    ready = "True" if step % 2 else "False"
    return PodSummary(
        uid=PodUID(f"0f6c1d2e-0000-4000-8000-{number:012}"),
        namespace=f"team-{number % 20}",
        name=f"web-{number}-5d9c7b8f6-x2x4z",
        node="node-1",
        labels={"app": f"web-{number % 50}", "pod-template-hash": "5d9c7b8f6", "tier": "front"},
        phase="Running",
        reason=f"{time.monotonic():.4f}",
        message=str(step),
        qos="Burstable",
        created=NOW,
        started=NOW,
        restart_policy="Always",
        ips=(f"10.0.{number // 256}.{number % 256}",),
        conditions=tuple(ConditionSummary(type=it, status=ready, since=NOW) for it in _CONDITIONS),
        containers=(
            ContainerSummary(
                name="app",
                image="registry.example.com/team/web:1.2.3",
                state=parse_container_state("running"),
                last_state=parse_container_state("terminated Error 3"),
                ready=step % 2 == 1,
                started=True,
                restarts=step,
            ),
        ),
    )


class Load:
    """Changes pods: most get another state, some are deleted and others created."""

    def __init__(self, scene: Scene, pods: int) -> None:
        self.cache = scene.view.snapshot_cache
        self._random = random.Random(1)
        self._steps = dict.fromkeys(range(pods), 0)
        self._next = pods
        for number in self._steps:
            self.cache.put(pod_at(number, 0))

    async def run(self, seconds: float, rate: int) -> int:
        """Make this many changes a second, and return their number."""
        began, done = time.monotonic(), 0
        while done < seconds * rate:
            elapsed = min(seconds, time.monotonic() - began)
            while done < elapsed * rate:
                self._change()
                done += 1
            await asyncio.sleep(0.004)
        return done

    def _change(self) -> None:
        number = self._random.choice(range(self._next))
        if number not in self._steps:
            number = self._next - 1
        if self._random.random() < 0.02:
            self._steps.pop(number, None)
            self.cache.remove(pod_at(number, 0).uid)
            number, self._next = self._next, self._next + 1
        self._steps[number] = self._steps.get(number, 0) + 1
        self.cache.put(pod_at(number, self._steps[number]))


def cost() -> dict[str, float]:
    """The resource usage of this process so far."""
    status = Path("/proc/self/status").read_text()
    sizes = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if " kB" in line}
    return {
        "rss_mb": int(sizes["VmRSS"]) / 1024,
        "peak_mb": int(sizes["VmHWM"]) / 1024,
        "cpu_seconds": time.process_time(),
    }


async def serve(scene: Scene) -> None:
    load = Load(scene, int(sys.argv[2]))
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tell({"url": scene.url, "certificate": str(scene.certificate)})
    while command := (await reader.readline()).decode().split():
        match command:
            case ["load", seconds, rate]:
                tell({"done": await load.run(float(seconds), int(rate))})
            case ["pods"]:
                tell({uid: pod.message for uid, pod in load.cache.pods().items()})
            case _:
                tell(cost())


def tell(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.flush()


async def main() -> None:
    scene = Scene(Path(sys.argv[1]), ServerOptions(node_name=NODE, token=TOKEN), SystemClock())
    scene.url = f"https://127.0.0.1:{await scene.server.start()}"
    try:
        await serve(scene)
    finally:
        await scene.server.stop()


if __name__ == "__main__":
    asyncio.run(main())
