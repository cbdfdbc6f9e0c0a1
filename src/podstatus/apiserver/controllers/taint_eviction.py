"""Evicts pods from nodes with NoExecute taints, after the time that they tolerate.

Upstream: pkg/controller/tainteviction/taint_eviction.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from podstatus.apiserver.controllers.base import RETRY_SECONDS, Controller
from podstatus.apiserver.controllers.decide.events import EventText
from podstatus.apiserver.controllers.decide.taint_eviction import (
    EvictAt,
    NoEviction,
    ScheduledAlready,
    decide_eviction,
    no_execute_taints,
)
from podstatus.apiserver.controllers.event_writer import EventWriter
from podstatus.apiserver.controllers.pod_writer import PodWriter, node_of, pod_reference
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.resources import NODES, PODS
from podstatus.apiserver.storage.store import DELETED, StorageKey, Store, StoreChange, StoredObject
from podstatus.base.clock import Clock
from podstatus.base.timer_heap import TimerHeap
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.event import NORMAL
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import Toleration

logger = logging.getLogger(__name__)

COMPONENT = "taint-eviction-controller"
_NO_EXECUTE = b'"NoExecute"'


class TaintEvictionController(Controller):
    """Schedules the evictions of pods; nodes and pods whose evictions may change are pending."""

    resources = (NODES.plural,)
    activity = "evicting pods"
    rejection = "cannot evict the pod: pod"

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._taints: dict[str, tuple[Taint, ...]] = {}
        """The NoExecute taints of the nodes that have some."""
        self._timers = TimerHeap[StorageKey]()
        self._events = EventWriter(store, registry, clock, COMPONENT)
        self._pods = PodWriter(registry, clock)
        super().__init__(store, registry, clock)

    def on_change(self, resource: str, change: StoreChange) -> None:
        if resource == PODS.plural:
            self._observe_pod(change)
        else:
            super().on_change(resource, change)

    async def run(self) -> None:
        """Evict pods when it is time. Runs until cancelled."""
        while True:
            if await self._reconcile_all() and self._evict_due():
                self._failure_log.recovered()
                await self._wait_for_work()
            else:
                await self._clock.wait(RETRY_SECONDS)

    async def _wait_for_work(self) -> None:
        """Wait for a change, or until the first eviction is due."""
        due = self._timers.next_due()
        timer = None if due is None else asyncio.create_task(self._wake_at(due))
        try:
            await self._wake_up.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _wake_at(self, due: int) -> None:
        await self._clock.wait((due - self._clock.monotonic()) / 1e9)
        self._wake_up.set("due")

    def _reconcile(self, key: StorageKey) -> None:
        """Schedule or cancel the evictions of a pending node or pod."""
        del self._pending[key]
        if key.namespace:
            pod = self._store.get(PODS.plural, key)
            if pod is not None:
                self._schedule(pod)
            elif key in self._timers:
                self._cancel(key)
            return
        for pod in [it for it in self._store.objects(PODS.plural) if node_of(it) == key.name]:
            self._schedule(pod)

    def _schedule(self, pod: StoredObject) -> None:
        taints = self._taints.get(node_of(pod), ())
        if not taints:
            self._cancel(pod.key)
            return
        scheduled = pod.key in self._timers
        now = self._clock.monotonic()
        decision = decide_eviction(taints, _tolerations(pod), now, is_scheduled=scheduled)
        match decision:
            case EvictAt():
                self._cancel(pod.key)
                self._timers.set(pod.key, decision.at)
            case NoEviction():
                self._cancel(pod.key)
            case ScheduledAlready():
                pass

    def _cancel(self, key: StorageKey) -> None:
        if key in self._timers:
            self._timers.cancel(key)
            self._record(key, "Cancelling deletion of")

    def _evict_due(self) -> bool:
        """Evict the pods whose time is over; return whether all writes succeeded."""
        succeeded = True
        for key in self._timers.pop_due(self._clock.monotonic()):
            if not self._try_write(key, partial(self._evict, key)):
                self._timers.set(key, self._clock.monotonic())
                succeeded = False
        return succeeded

    def _evict(self, key: StorageKey) -> None:
        pod = self._store.get(PODS.plural, key)
        if pod is None:
            return
        self._pods.evict(key)
        logger.info("pod evicted by a taint: pod=%s/%s node=%s", *key, node_of(pod))
        self._record(key, "Marking for deletion")

    def _record(self, key: StorageKey, what: str) -> None:
        message = f"{what} Pod {key.namespace}/{key.name}"
        self._events.record(pod_reference(key), EventText(NORMAL, "TaintManagerEviction", message))

    def _observe_pod(self, change: StoreChange) -> None:
        """Record a pod as pending; most changes, of statuses, concern no eviction."""
        key = change.new.key
        if change.type == DELETED:
            if key in self._timers:
                self._wake(key)
            return
        if node_of(change.new) not in self._taints:
            return
        if change.old is None or _binding(change.old) != _binding(change.new):
            self._wake(key)

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource != NODES.plural:
            return
        if data is None:
            # Its pods are not evicted sooner or later than they would have been.
            self._taints.pop(key.name, None)
            return
        taints = _node_taints(data)
        if taints != self._taints.get(key.name, ()):
            self._taints[key.name] = taints
            if not taints:
                del self._taints[key.name]
            self._wake(key)

    def _wake(self, key: StorageKey) -> None:
        self._pending[key] = None
        self._wake_up.set("changed")


def _node_taints(data: bytes) -> tuple[Taint, ...]:
    # Most nodes have none, and are not decoded.
    if _NO_EXECUTE not in data:
        return ()
    try:
        return no_execute_taints(decode(data, Node).spec.taints)
    except DecodeError:
        return ()


def _binding(pod: StoredObject) -> tuple[str, Sequence[Toleration]]:
    """Return what decides about the eviction of a pod."""
    return node_of(pod), _tolerations(pod)


def _tolerations(pod: StoredObject) -> Sequence[Toleration]:
    return decode(pod.data, Pod).spec.tolerations or ()
