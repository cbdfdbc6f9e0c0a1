"""A store with the controllers of silent nodes, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from podstatus.apiserver.controllers.base import ChangeFollower
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.controllers.node_lifecycle import NodeLifecycleController
from podstatus.apiserver.controllers.node_monitor import NodeMonitor
from podstatus.apiserver.controllers.pod_gc import PodGarbageCollector
from podstatus.apiserver.controllers.scheduler import Scheduler
from podstatus.apiserver.controllers.taint_eviction import TaintEvictionController
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.storage.store import StorageError, StorageKey, Store, StoreChange
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.by_resource import STRATEGIES, selectable_fields
from podstatus.kube.objects.cluster import DeleteOptions
from podstatus.kube.scalars.time import MicroTime, Time
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.apiserver.targets import NAMESPACES, target
from tests.support.loops import in_background

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_PREFIX = "node.kubernetes.io/"


class FullStore(Store):
    """A store in memory whose writes fail while `is_full` is set, or those of one resource."""

    is_full = False
    full_for = ""

    def _write(self, version: int, *statements: tuple[str, tuple[Any, ...]]) -> None:
        if self.is_full or statements[0][1][0] == self.full_for:
            raise StorageError("disk is full")
        super()._write(version, *statements)


class VirtualCluster:
    """Nodes are heard when a test says so; the store outlives the controllers."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FullStore(None, selectable_fields)
        self.registry = Registry(self.store, STRATEGIES, self.clock)
        for name in ("default", "kube-node-lease"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.registry.create(NAMESPACES, body)

    @asynccontextmanager
    async def controlled(self, policy: NodeMonitorPolicy | None = None) -> AsyncIterator[Self]:
        """Run the controllers; they start as a server does that was restarted."""
        arguments = (self.store, self.registry, self.clock)
        followers: list[ChangeFollower] = [
            NodeLifecycleController(*arguments),
            NodeMonitor(*arguments, policy or NodeMonitorPolicy()),
            TaintEvictionController(*arguments),
            PodGarbageCollector(*arguments),
            Scheduler(*arguments),
        ]

        def publish(resource: str, change: StoreChange) -> None:
            for follower in followers:
                follower.on_change(resource, change)

        self.store.listener = publish
        async with AsyncExitStack() as stack:
            for follower in followers:
                await stack.enter_async_context(in_background(follower.run()))
            await run_ready_tasks()
            yield self
        self.store.listener = lambda *_: None

    def add_node(self, name: str, ready: str = "True", **labels: str) -> None:
        meta = {
            "name": name,
            "labels": {_PREFIX + k.replace("_", "-"): v for k, v in labels.items()},
        }
        body = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        allocatable = {"pods": "110", "cpu": "4"}
        self.registry.create(
            target("/api/v1/nodes"), body | {"status": {"allocatable": allocatable}}
        )
        if ready:
            self.report(name, ready)

    def report(self, name: str, ready: str = "True") -> None:
        """The node posts its status."""
        now = Time.from_unix_nanos(self.clock.now()).wire
        conditions = [
            {"type": kind, "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
            for kind, status in (("Ready", ready), ("DiskPressure", "False"))
        ]
        self._change(f"/api/v1/nodes/{name}", lambda it: _with_conditions(it, conditions))

    def renew(self, name: str, *, clock_ahead: int = 0) -> None:
        """The node renews its Lease, which it creates first."""
        renewed = MicroTime.from_unix_nanos(self.clock.now() + clock_ahead * 10**9).wire
        spec = {"renewTime": renewed, "leaseDurationSeconds": 40}
        if self.store.get("leases", StorageKey("kube-node-lease", name)) is None:
            meta = {"name": name}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
            self.registry.create(target(LEASES), body | {"spec": spec})
        else:
            self._change(f"{LEASES}/{name}", lambda it: it | {"spec": spec})

    async def live(self, seconds: int, *names: str) -> None:
        """Let time pass in which these nodes renew their Leases."""
        for _ in range(seconds // 5):
            for name in names:
                self.renew(name)
            await self.clock.advance(5)

    def add_pod(self, name: str, node: str = "", *, ready: str = "True", **spec: Any) -> None:
        containers = [{"name": "app", "image": "app:1"}]
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        spec = {"containers": containers, "nodeName": node} | spec
        self.registry.create(target("/api/v1/namespaces/default/pods"), body | {"spec": spec})
        if node:
            self.report_pod(name, ready)

    def report_pod(self, name: str, ready: str = "True") -> None:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        self._change(_pod(name), lambda it: it | {"status": status})

    def delete(self, path: str) -> None:
        self.registry.delete(target(path), DeleteOptions())

    def patch(self, path: str, **spec: Any) -> None:
        self._change(path, lambda it: it | {"spec": it["spec"] | spec})

    def node(self, name: str) -> Document:
        stored = self.store.get("nodes", StorageKey("", name))
        assert stored is not None
        return stored.document()

    def ready(self, name: str) -> str:
        """The status of Ready of a node."""
        return str(condition(self.node(name), "Ready").get("status", ""))

    def taints(self, name: str, effect: str = "NoExecute") -> str:
        taints = self.node(name)["spec"].get("taints") or ()
        return " ".join(t["key"].removeprefix(_PREFIX) for t in taints if t["effect"] == effect)

    def pod(self, name: str) -> Document:
        stored = self.store.get("pods", StorageKey("default", name))
        return {} if stored is None else stored.document()

    def pod_ready(self, name: str) -> str:
        return str(condition(self.pod(name), "Ready").get("status", ""))

    def is_terminating(self, name: str) -> bool:
        return bool(self.pod(name)["metadata"].get("deletionTimestamp"))

    def events(self, name: str) -> list[str]:
        """Reason, message and count of the events about an object."""
        found = [it.document() for it in self.store.objects("events")]
        return sorted(
            f"{it['reason']}: {it['message']} ({it.get('count')})"
            for it in found
            if it["involvedObject"]["name"] == name
        )

    def _change(self, path: str, change: Any) -> None:
        self.registry.overwrite(target(path), change)


def condition(found: Document, kind: str) -> Document:
    conditions = found.get("status", {}).get("conditions") or ()
    return next((it for it in conditions if it["type"] == kind), {})


def tolerating(seconds: int | None) -> list[Document]:
    """A toleration of all NoExecute taints, for so long; None for ever."""
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return [{"operator": "Exists", "effect": "NoExecute"} | limit]


def _with_conditions(node: Document, conditions: list[Document]) -> Document:
    return node | {"status": node.get("status", {}) | {"conditions": conditions}}


def _pod(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"
