"""What the controllers of silent nodes cost the embedded API server, with 1,000 nodes.

Each node renews its Lease every 10 s and posts its status every 5 min; 50 of 5,000 pods change
their status every second. Time is virtual, so the bench is as fast as the controllers are: their
share of a core is their CPU time, at changes and in their passes, by the virtual time. Then 500
nodes fall silent at once: the CPU time of all that takes, and how long the event loop is blocked.
"""

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from podstatus.apiserver.controllers.base import ChangeFollower
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.controllers.node_lifecycle import NodeLifecycleController
from podstatus.apiserver.controllers.node_monitor import NodeMonitor
from podstatus.apiserver.controllers.pod_gc import PodGarbageCollector
from podstatus.apiserver.controllers.scheduler import Scheduler
from podstatus.apiserver.controllers.taint_eviction import TaintEvictionController
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import LEASES, NAMESPACES, NODES, PODS
from podstatus.apiserver.storage.store import Store, StoreChange
from podstatus.apiserver.strategies.by_resource import STRATEGIES, selectable_fields
from podstatus.kube.scalars.time import MicroTime, Time

RESULTS = Path(__file__).parent / "results" / "nodes.json"
NODE_COUNT = 1_000
PODS_PER_NODE = 5
SECONDS = 60
"""Virtual seconds of a round."""
ROUNDS = 5
RENEW_SECONDS, STATUS_SECONDS, POD_CHANGES_PER_SECOND = 10, 300, 50
SILENT_SHARE = 0.5
AT_MOST = {"controllers_percent": 5.0}
_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")

Document = dict[str, Any]


class VirtualClock:
    """A clock that the bench advances."""

    def __init__(self) -> None:
        self.seconds = 4_000_000_000.0

    def now(self) -> int:
        """Return the wall clock in nanoseconds."""
        return int(self.seconds * 1e9)

    def monotonic(self) -> int:
        """Return the monotonic clock in nanoseconds."""
        return int(self.seconds * 1e9)

    async def wait(self, seconds: float) -> None:
        """Wait forever: the bench calls what is periodic."""
        await asyncio.Event().wait()


class Cluster:
    """A store with nodes and pods, and the controllers, whose CPU time is measured."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = Store(None, selectable_fields)
        self.registry = Registry(self.store, STRATEGIES, self.clock)
        for name in ("default", "kube-node-lease"):
            self._create(NAMESPACES, None, {"name": name}, {})
        for number in range(NODE_COUNT):
            self._create_node(number)
        for number in range(NODE_COUNT * PODS_PER_NODE):
            self._create_pod(number)
        arguments = (self.store, self.registry, self.clock)
        self.monitor = NodeMonitor(*arguments, NodeMonitorPolicy())
        self.collector = PodGarbageCollector(*arguments)
        self._followers: list[ChangeFollower] = [
            NodeLifecycleController(*arguments),
            self.monitor,
            TaintEvictionController(*arguments),
            self.collector,
            Scheduler(*arguments),
        ]
        self.spent = 0.0
        self.store.listener = self._publish

    def renew(self, number: int) -> None:
        """A node renews its Lease."""
        renewed = MicroTime(Time.from_unix_nanos(self.clock.now())).wire
        self._overwrite(LEASES, "kube-node-lease", f"node-{number}", {"spec": _lease(renewed)})

    def report(self, number: int) -> None:
        """A node posts its status."""
        now = Time.from_unix_nanos(self.clock.now()).wire
        self._overwrite(NODES, None, f"node-{number}", {"status": _status(now)})

    def change_pod(self, number: int) -> None:
        """A pod becomes Ready."""
        ready = {"type": "Ready", "status": "True", "message": str(self.clock.seconds)}
        status = {"phase": "Running", "conditions": [ready]}
        self._overwrite(PODS, "default", f"pod-{number}", {"status": status})

    async def second(self, at: int, living: int) -> None:
        """Let a second pass in which the first `living` nodes do what is due."""
        self.clock.seconds += 1
        for number in range(at % RENEW_SECONDS, living, RENEW_SECONDS):
            self.renew(number)
        for number in range(at % STATUS_SECONDS, living, STATUS_SECONDS):
            self.report(number)
        for step in range(POD_CHANGES_PER_SECOND):
            self.change_pod((at * POD_CHANGES_PER_SECOND + step) % (living * PODS_PER_NODE))
        if at % 5 == 0:
            await self._measured(self.monitor.check_once())
        if at % 20 == 0:
            await self._measured(self.collector.check_once())

    async def _measured(self, check: Any) -> None:
        begin = time.process_time()
        await check
        self.spent += time.process_time() - begin

    def _publish(self, resource: str, change: StoreChange) -> None:
        begin = time.process_time()
        for follower in self._followers:
            follower.on_change(resource, change)
        self.spent += time.process_time() - begin

    def _create(self, resource: Any, namespace: str | None, meta: Document, body: Document) -> None:
        target = ResourcePath(resource=resource, namespace=namespace)
        head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        self.registry.create(target, head | body)

    def _create_node(self, number: int) -> None:
        name = f"node-{number}"
        now = Time.from_unix_nanos(self.clock.now()).wire
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        self._create(NODES, None, {"name": name, "labels": labels}, {"status": _status(now)})
        renewed = MicroTime(Time.from_unix_nanos(self.clock.now())).wire
        self._create(LEASES, "kube-node-lease", {"name": name}, {"spec": _lease(renewed)})

    def _create_pod(self, number: int) -> None:
        containers = [{"name": "app", "image": "registry.example.com/app:1"}]
        spec = {"containers": containers, "nodeName": f"node-{number % NODE_COUNT}"}
        self._create(PODS, "default", {"name": f"pod-{number}"}, {"spec": spec})
        self.change_pod(number)

    def _overwrite(self, resource: Any, namespace: str | None, name: str, change: Document) -> None:
        target = ResourcePath(resource=resource, namespace=namespace, name=name)
        self.registry.overwrite(target, lambda old: old | change)


def _lease(renewed: str | None) -> Document:
    return {"holderIdentity": "node", "leaseDurationSeconds": 40, "renewTime": renewed}


def _status(now: str | None) -> Document:
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet has reported {kind}",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind in _CONDITIONS
    ]
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    return {
        "conditions": conditions,
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": addresses,
    }


async def measure_load(cluster: Cluster) -> list[float]:
    """Return what the controllers use of a core, in percent, by round."""
    rounds = []
    for number in range(ROUNDS):
        cluster.spent = 0.0
        for at in range(number * SECONDS, (number + 1) * SECONDS):
            await cluster.second(at, NODE_COUNT)
        rounds.append(cluster.spent / SECONDS * 100)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    return rounds


async def measure_outage(cluster: Cluster) -> dict[str, float]:
    """Return the CPU time of an outage, and for how long it blocks the event loop at most."""
    cluster.spent, living = 0.0, round(NODE_COUNT * (1 - SILENT_SHARE))
    begin, longest = round(cluster.clock.seconds), 0.0
    for at in range(begin, begin + 60):
        step = asyncio.ensure_future(cluster.second(at, living))
        while not step.done():
            started = time.process_time()
            await asyncio.sleep(0)
            longest = max(longest, time.process_time() - started)
    return {"outage_cpu_s": cluster.spent, "outage_longest_block_ms": longest * 1e3}


async def measure() -> dict[str, float]:
    """Return all figures; those of the load are medians of rounds."""
    cluster = Cluster()
    percent = await measure_load(cluster)
    return {"controllers_percent": statistics.median(percent)} | await measure_outage(cluster)


def main() -> None:
    """Measure, print a table and write the figures."""
    figures = asyncio.run(measure())
    print(f"{'':<26}{'seen':>12}{'at most':>12}")
    for name, value in figures.items():
        print(f"{name:<26}{value:>12.2f}{AT_MOST.get(name, ''):>12}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))
    if any(figures[name] > limit for name, limit in AT_MOST.items()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
