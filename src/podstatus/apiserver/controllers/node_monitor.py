"""The node monitor: silent nodes become Unknown, get NoExecute taints, and their pods not Ready.

Upstream: monitorNodeHealth and doNoExecuteTaintingPass,
pkg/controller/nodelifecycle/node_lifecycle_controller.go v1.36.4. There the passes of health and of
taints have timers of their own; here a pass decides about both.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from podstatus.apiserver.controllers.base import BATCH_SIZE, PeriodicController
from podstatus.apiserver.controllers.decide.events import EventText
from podstatus.apiserver.controllers.decide.monitored_node import MonitoredNode, monitored_node
from podstatus.apiserver.controllers.decide.node_health import (
    TRUE,
    UNKNOWN,
    NodeHealth,
    is_silent,
    mark_unknown,
    observe_lease,
    observe_node,
)
from podstatus.apiserver.controllers.decide.node_taints import with_no_execute
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.controllers.decide.zones import ClusterTransition
from podstatus.apiserver.controllers.event_writer import EventWriter
from podstatus.apiserver.controllers.lease_ages import LEASE_NAMESPACE
from podstatus.apiserver.controllers.no_execute_queue import NoExecuteQueue
from podstatus.apiserver.controllers.node_lifecycle import with_taints
from podstatus.apiserver.controllers.pod_writer import PodWriter, node_of
from podstatus.apiserver.generic_registry import Registry, UpdateFunc
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import LEASES, NODES, PODS
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.base.clock import Clock
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.event import NORMAL, WARNING
from podstatus.kube.objects.node import Node
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)

COMPONENT = "node-controller"
_MAX_LOGGED = 10
_POD_NOT_READY = EventText(WARNING, "NodeNotReady", "Node is not ready")


class NodeMonitor(PeriodicController):
    """Follows the Leases and heartbeats of nodes, and checks once per period who is silent."""

    resources = (NODES.plural, LEASES.plural)
    activity = "monitoring nodes"
    rejection = "cannot update the silent node or its pods: object"

    def __init__(
        self, store: Store, registry: Registry, clock: Clock, policy: NodeMonitorPolicy
    ) -> None:
        self._policy = policy
        self._nodes: dict[str, MonitoredNode] = {}
        self._healths: dict[str, NodeHealth] = {}
        self._known: dict[str, str] = {}
        """The UIDs of the Nodes that a pass has seen, by name."""
        self._unmarked: set[str] = set()
        """Nodes that became Unknown, whose pods have yet to be marked as not Ready."""
        self._silent: list[str] = []
        """Nodes that this pass found to be silent, for the log."""
        self._due_at: int | None = None
        self._events = EventWriter(store, registry, clock, COMPONENT)
        self._pods = PodWriter(registry, clock)
        self._queue = NoExecuteQueue(policy)
        super().__init__(store, registry, clock, period_seconds=policy.node_monitor_period)

    async def check_once(self) -> bool:
        """Check all nodes; return whether all writes succeeded."""
        self._credit_stall()
        self._forget_deleted()
        succeeded = True
        for number, name in enumerate(list(self._nodes), start=1):
            if name in self._nodes:
                succeeded &= self._welcome(name) and self._check_node(name)
            if number % BATCH_SIZE == 0:
                await asyncio.sleep(0)
        self._log_silent()
        self._update_zones()
        succeeded &= self._write_no_execute(
            self._queue.pop_allowed(self._nodes, self._clock.monotonic())
        )
        return await self._mark_pods() and succeeded

    def _credit_stall(self) -> None:
        """After a stall of this process, nodes get the time in which they could not be heard."""
        now, period = self._clock.monotonic(), round(self._policy.node_monitor_period * 1e9)
        late = 0 if self._due_at is None else now - self._due_at
        if late > period:
            logger.warning("monitoring of nodes was stalled: seconds=%.1f", late / 1e9)
            self._hear_all(late)
        self._due_at = now + period

    def _hear_all(self, later_ns: int) -> None:
        now = self._clock.monotonic()
        self._healths = {
            name: health.heard_later(later_ns, now) for name, health in self._healths.items()
        }

    def _forget_deleted(self) -> None:
        for name, uid in list(self._known.items()):
            if name not in self._nodes:
                del self._known[name]
                self._record_registration(name, uid, "RemovingNode", f"Removing Node {name} from")

    def _welcome(self, name: str) -> bool:
        """Handle a Node that is new to this process; return False to retry.

        Its taints NoExecute are removed and come back in their time, so that a restart of the
        server does not evict pods before their nodes had the time to report.
        """
        node = self._nodes[name]
        if self._known.get(name) == node.uid:
            return True
        if node.no_execute and not self._write_no_execute({name: ""}):
            return False
        is_first = name not in self._known
        self._known[name] = node.uid
        if is_first:
            self._record_registration(
                name, node.uid, "RegisteredNode", f"Registered Node {name} in"
            )
        if node.ready is not None and node.ready_status == UNKNOWN:
            self._unmarked.add(name)
        return True

    def _check_node(self, name: str) -> bool:
        """Mark the node as Unknown if it is silent, and follow its taints; False to retry."""
        before = self._nodes[name]
        needs_change = before.ready is None or before.ready_status != UNKNOWN
        if needs_change and self._is_silent(name):
            now = Time.from_unix_nanos(self._clock.now())
            if not self._overwrite(name, partial(mark_unknown, now=now)):
                return False
            self._silent.append(name)
            if before.ready_status == TRUE:
                self._report_not_ready(name, before.uid)
        current = self._nodes.get(name)
        if current is None or current.ready is None:
            return True
        key = self._queue.follow(name, current)
        return key is None or self._write_no_execute({name: key})

    def _log_silent(self) -> None:
        """One line for all: a thousand nodes may fall silent at once."""
        if names := self._silent:
            first = ",".join(names[:_MAX_LOGGED])
            logger.info(
                "nodes are silent, conditions are Unknown: count=%d nodes=%s", len(names), first
            )
        self._silent = []

    def _is_silent(self, name: str) -> bool:
        return is_silent(
            self._healths[name],
            self._clock.monotonic(),
            grace=self._policy.node_monitor_grace_period,
            startup_grace=self._policy.node_startup_grace_period,
        )

    def _update_zones(self) -> None:
        match self._queue.update_zones(self._nodes, self._clock.monotonic()):
            case ClusterTransition.ENTERED_FULL_DISRUPTION:
                logger.info("no node is Ready: no pods are evicted until one is")
                tainted = [name for name, node in self._nodes.items() if node.no_execute]
                self._write_no_execute(dict.fromkeys(tainted, ""))
            case ClusterTransition.LEFT_FULL_DISRUPTION:
                logger.info("a node is Ready: pods of silent nodes are evicted again")
                self._hear_all(self._clock.monotonic())
            case ClusterTransition.NONE:
                pass

    def _report_not_ready(self, name: str, uid: str) -> None:
        message = f"Node {name} status is now: NodeNotReady"
        self._events.record(_reference(name, uid), EventText(NORMAL, "NodeNotReady", message))
        self._unmarked.add(name)

    def _record_registration(self, name: str, uid: str, reason: str, what: str) -> None:
        text = EventText(NORMAL, reason, f"Node {name} event: {what} Controller")
        self._events.record(_reference(name, uid), text)

    def _write_no_execute(self, keys: Mapping[str, str]) -> bool:
        """Write the taints NoExecute of nodes: one key each, empty for none; False to retry."""
        now = Time.from_unix_nanos(self._clock.now())
        succeeded = True
        for name, key in keys.items():
            change = partial(with_no_execute, key=key, now=now)
            succeeded &= self._overwrite(name, partial(with_taints, change=change))
        return succeeded

    def _overwrite(self, name: str, change: UpdateFunc) -> bool:
        target = ResourcePath(resource=NODES, name=name)
        return self._try_write(
            StorageKey("", name), lambda: self._registry.overwrite(target, change)
        )

    async def _mark_pods(self) -> bool:
        """Mark the pods of nodes that became Unknown as not Ready; return False to retry."""
        nodes = {name for name in self._unmarked if name in self._nodes}
        self._unmarked -= self._unmarked - nodes
        if not nodes:
            return True
        pods = [it for it in self._store.objects(PODS.plural) if node_of(it) in nodes]
        failed = set()
        for number, pod in enumerate(pods, start=1):
            # The node may be Ready again, after a wait.
            is_needed = node_of(pod) in self._unmarked
            if is_needed and not self._try_write(pod.key, partial(self._mark_pod, pod.key)):
                failed.add(node_of(pod))
            if number % BATCH_SIZE == 0:
                await asyncio.sleep(0)
        self._unmarked -= nodes - failed
        return not failed

    def _mark_pod(self, key: StorageKey) -> None:
        if self._store.get(PODS.plural, key) is None:
            return
        marked = self._pods.mark_not_ready(key)
        if marked is not None:
            meta = marked["metadata"]
            reference = {"kind": "Pod", "apiVersion": "v1"}
            reference |= {k: meta[k] for k in ("namespace", "name", "uid", "resourceVersion")}
            self._events.record(reference, _POD_NOT_READY)

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource == NODES.plural:
            self._observe_node(key.name, data)
        elif resource == LEASES.plural and key.namespace == LEASE_NAMESPACE:
            self._observe_lease(key.name, data)

    def _observe_node(self, name: str, data: bytes | None) -> None:
        node = None if data is None else self._decode(name, data)
        if node is None:
            self._nodes.pop(name, None)
            self._healths.pop(name, None)
            return
        facts = monitored_node(node)
        health = observe_node(self._healths.get(name), facts.ready, self._clock.monotonic())
        self._nodes[name] = facts
        self._healths[name] = health
        if facts.ready_status == TRUE:
            self._unmarked.discard(name)

    def _observe_lease(self, name: str, data: bytes | None) -> None:
        if data is None or name not in self._healths:
            return
        try:
            renewed = decode(data, Lease).spec.renew_time
        except DecodeError:
            return
        now = self._clock.monotonic()
        self._healths[name] = observe_lease(self._healths[name], renewed, now)

    def _decode(self, name: str, data: bytes) -> Node | None:
        try:
            return decode(data, Node)
        except DecodeError as error:
            logger.warning(
                "cannot decode the node, it is not monitored: node=%s error=%s", name, error
            )
        return None


def _reference(name: str, uid: str) -> dict[str, str]:
    return {"kind": "Node", "apiVersion": "v1", "name": name, "uid": uid}
