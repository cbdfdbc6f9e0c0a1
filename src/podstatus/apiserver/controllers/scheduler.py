"""The scheduler: binds pending pods to the first node with enough free capacity.

It tracks the requests on each node by following every change, so a decision looks only at pending
pods and nodes.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator

from msgspec import structs

from podstatus.apiserver.controllers.base import Controller
from podstatus.apiserver.controllers.decide.scheduling import (
    REPORTING_COMPONENT,
    NodeInfo,
    ResourceNanos,
    ScheduleResult,
    failed_scheduling_event,
    increment_series,
    node_info,
    pod_request,
    schedule_pod,
    scheduled_event,
)
from podstatus.apiserver.controllers.event_writer import EventWriter
from podstatus.apiserver.controllers.lease_ages import LeaseAges
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import LEASES, NODES, PODS
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.pod.binding import (
    bind_pod,
    mark_unschedulable,
    unschedulable_message,
)
from podstatus.base.clock import Clock
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.scalars.quantity import QuantityError
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)

SCHEDULER_NAME = "default-scheduler"
"""Pods with another schedulerName are ignored."""


class Scheduler(Controller):
    """Binds pods to nodes; unbound pods are pending, oldest first."""

    resources = (NODES.plural, PODS.plural, LEASES.plural)
    activity = "binding pods"
    rejection = "cannot bind pod: pod"

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._node_infos: dict[str, NodeInfo] = {}
        self._pod_usage: dict[StorageKey, tuple[str, ResourceNanos]] = {}
        """By pod: its node and requests."""
        self._requested: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._events = EventWriter(store, registry, clock, REPORTING_COMPONENT)
        self._leases = LeaseAges(clock)
        super().__init__(store, registry, clock)
        self._leases.start()

    def _reconcile(self, key: StorageKey) -> None:
        """Bind a pod if it fits a node now."""
        stored = self._store.get(PODS.plural, key)
        if stored is not None:
            request = pod_request(decode(stored.data, Pod))
            result = schedule_pod(request, self._available_nodes(), self._requested)
            self._apply_result(result, key)

    def _available_nodes(self) -> Iterator[NodeInfo]:
        """Yield the nodes; one whose Lease has expired is not ready."""
        for name, info in self._node_infos.items():
            yield structs.replace(info, ready=False) if self._leases.is_expired(name) else info

    def _apply_result(self, result: ScheduleResult, key: StorageKey) -> None:
        target = ResourcePath(resource=PODS, namespace=key.namespace, name=key.name)
        now = Time.from_unix_nanos(self._clock.now())
        if result.node:
            binding = {"target": {"kind": "Node", "name": result.node}}
            bound = self._registry.overwrite(target, lambda pod: bind_pod(pod, binding, now))
            logger.info("pod bound: pod=%s/%s node=%s", *key, result.node)
            self._record_event(scheduled_event(bound, result.node, now), now)
        elif result.message:
            pod: Document = self._registry.get(target).document()
            marked = mark_unschedulable(pod, result.message, now)
            # The pod first: if its write failed after the event, each retry would count the event
            # again.
            if marked != pod:
                self._registry.overwrite(target, lambda _: marked)
            if unschedulable_message(pod) != result.message:
                self._record_event(failed_scheduling_event(pod, result.message, now), now)

    def _record_event(self, event: Document, now: Time) -> None:
        self._events.write(event, lambda old: increment_series(old, now))

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource == NODES.plural:
            self._on_node_change(key.name, data)
        elif resource == PODS.plural:
            self._on_pod_change(key, data)
        elif resource == LEASES.plural and self._leases.observe(key, data):
            self._wake_up.set("lease")

    def _on_node_change(self, name: str, data: bytes | None) -> None:
        before = self._node_infos.pop(name, None)
        if data is not None:
            try:
                self._node_infos[name] = node_info(decode(data, Node))
            except (DecodeError, QuantityError) as error:
                logger.warning(
                    "cannot decode the node, no pods are scheduled to it: node=%s error=%s",
                    name,
                    error,
                )
        # Ignore heartbeats, ten a minute: they do not change what the node offers.
        if self._node_infos.get(name) != before:
            self._wake_up.set("node")

    def _on_pod_change(self, key: StorageKey, data: bytes | None) -> None:
        released, pending = self._release(key), False
        if data is not None:
            try:
                pending = self._account_pod(key, decode(data, Pod))
            except (DecodeError, QuantityError) as error:
                logger.warning(
                    "cannot decode the pod, it is not scheduled: pod=%s/%s error=%s", *key, error
                )
        if pending:
            self._pending[key] = None
            self._wake_up.set("pod")
        else:
            self._pending.pop(key, None)
        if released is not None and self._pod_usage.get(key) != released:
            self._wake_up.set("capacity")

    def _account_pod(self, key: StorageKey, pod: Pod) -> bool:
        """Add the pod's requests to its node; return whether it is pending instead."""
        if is_terminal_phase(pod.status.phase):
            return False
        request = pod_request(pod)
        if pod.spec.node_name:
            self._pod_usage[key] = pod.spec.node_name, request.amounts
            for name, amount in request.amounts.items():
                self._requested[pod.spec.node_name][name] += amount
        return not pod.spec.node_name and _responsible_for_pod(pod)

    def _release(self, key: StorageKey) -> tuple[str, ResourceNanos] | None:
        usage = self._pod_usage.pop(key, None)
        if usage is not None:
            node, amounts = usage
            for name, amount in amounts.items():
                self._requested[node][name] -= amount
        return usage


def _responsible_for_pod(pod: Pod) -> bool:
    """True if this scheduler has to find a node for the pod."""
    return (
        pod.spec.scheduler_name == SCHEDULER_NAME
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
    )
