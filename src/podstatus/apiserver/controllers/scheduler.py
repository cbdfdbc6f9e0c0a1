"""Bind pods without a node to one that has room, as soon as there is one.

It keeps account of what is taken on each node by following every change, so that a decision
looks at the waiting pods and the nodes only.
"""

import asyncio
import logging
from collections import defaultdict

from podstatus.apiserver.controllers.decide.scheduling import (
    Amounts,
    Choice,
    Room,
    bound_event,
    choose,
    need_of,
    repeated_event,
    room_of,
    unschedulable_event,
)
from podstatus.apiserver.http.errors import Problem
from podstatus.apiserver.http.router import Target
from podstatus.apiserver.registry import Registry
from podstatus.apiserver.resources import EVENTS, NODES, PODS
from podstatus.apiserver.storage.store import DELETED, Change, Key, Store, StoreError
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.pod.binding import (
    bound_pod,
    said_unschedulable,
    unschedulable_pod,
)
from podstatus.base.aio import WakeUp
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.scalars.quantity import QuantityError
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)

SCHEDULER_NAME = "default-scheduler"
"""Pods that ask for another one wait for it."""
AT_ONCE = 50
"""So many pods are looked at before others get a turn: some milliseconds."""
_RETRY_SECONDS = 1.0
"""After which what could not be written is tried again."""


class Scheduler:
    """Told of every change by `notice`; `run` does the binding."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._wake = WakeUp[str]()
        self._trouble = FailureLog(logger, "binding pods", expected=StoreError)
        self._rooms: dict[str, Room] = {}
        self._taken: dict[Key, tuple[str, Amounts]] = {}
        """What each pod takes, and of which node."""
        self._loads: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._waiting: dict[Key, None] = {}
        """Without a node, those who came first in front."""
        for stored in store.objects(NODES.plural):
            self._see_node(stored.key.name, stored.data)
        for stored in store.objects(PODS.plural):
            self._see_pod(stored.key, stored.data)

    def notice(self, resource: str, change: Change) -> None:
        """Take account of a change, whoever made it."""
        data = None if change.type == DELETED else change.new.data
        if resource == NODES.plural:
            self._see_node(change.new.key.name, data)
        elif resource == PODS.plural:
            self._see_pod(change.new.key, data)

    async def run(self) -> None:
        """Bind pods whenever something changes that may help them."""
        while True:
            await self._wake.wait()
            waiting, is_written = list(self._waiting), True
            for start in range(0, len(waiting), AT_ONCE):
                is_written &= self.schedule(waiting[start : start + AT_ONCE])
                await asyncio.sleep(0)
            if is_written:
                self._trouble.recovered()
            else:
                # A disk that has room again wakes nobody.
                await self._clock.wait(_RETRY_SECONDS)
                self._wake.set("again")

    def schedule(self, keys: list[Key]) -> bool:
        """Bind those of these pods that fit somewhere now; whether all that could be written."""
        is_written = True
        for key in keys:
            stored = self._store.get(PODS.plural, key)
            if stored is None or key not in self._waiting:
                continue
            choice = choose(need_of(decode(stored.data, Pod)), self._rooms.values(), self._loads)
            try:
                self._follow(choice, key)
            except Problem as error:
                logger.warning("pod not bound: pod=%s/%s error=%s", *key, error)
            except StoreError as error:
                self._trouble.failed(error)
                is_written = False
        return is_written

    def _follow(self, choice: Choice, key: Key) -> None:
        target = Target(resource=PODS, namespace=key.namespace, name=key.name)
        now = Time.from_unix_nanos(self._clock.now())
        if choice.node:
            binding = {"target": {"kind": "Node", "name": choice.node}}
            bound = self._registry.overwrite(target, lambda pod: bound_pod(pod, binding, now))
            logger.info("pod bound: pod=%s/%s node=%s", *key, choice.node)
            self._record(bound_event(bound, choice.node, now), now)
        elif choice.message:
            pod: Document = self._registry.get(target).document()
            told = unschedulable_pod(pod, choice.message, now)
            # First the pod: else each try to write it would tell the event once more.
            if told != pod:
                self._registry.overwrite(target, lambda _: told)
            if said_unschedulable(pod) != choice.message:
                self._record(unschedulable_event(pod, choice.message, now), now)

    def _record(self, event: Document, now: Time) -> None:
        """Tell it; one that cannot be told, as in a namespace that is to go, holds up nobody."""
        metadata = event["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        target = Target(resource=EVENTS, namespace=namespace, name=name)
        try:
            if self._store.get(EVENTS.plural, Key(namespace, name)) is None:
                self._registry.create(target, event)
            else:
                self._registry.overwrite(target, lambda known: repeated_event(known, now))
        except (Problem, StoreError) as error:
            logger.warning("event not recorded: event=%s/%s error=%s", namespace, name, error)

    def _see_node(self, name: str, data: bytes | None) -> None:
        before = self._rooms.pop(name, None)
        if data is not None:
            try:
                self._rooms[name] = room_of(decode(data, Node))
            except (DecodeError, QuantityError) as error:
                logger.warning("node cannot be scheduled to: node=%s error=%s", name, error)
        # A node says ten times a minute that it is well; that helps nobody who waits.
        if self._rooms.get(name) != before:
            self._wake.set("node")

    def _see_pod(self, key: Key, data: bytes | None) -> None:
        freed, waits = self._release(key), False
        if data is not None:
            try:
                waits = self._take(key, decode(data, Pod))
            except (DecodeError, QuantityError) as error:
                logger.warning("pod cannot be scheduled: pod=%s/%s error=%s", *key, error)
        if waits:
            self._waiting[key] = None
            self._wake.set("pod")
        else:
            self._waiting.pop(key, None)
        if freed is not None and self._taken.get(key) != freed:
            self._wake.set("room")

    def _take(self, key: Key, pod: Pod) -> bool:
        """Count what the pod takes; whether it waits for a node instead."""
        if is_terminal_phase(pod.status.phase):
            return False
        need = need_of(pod)
        if pod.spec.node_name:
            self._taken[key] = pod.spec.node_name, need.amounts
            for name, amount in need.amounts.items():
                self._loads[pod.spec.node_name][name] += amount
        return not pod.spec.node_name and _is_ours(pod)

    def _release(self, key: Key) -> tuple[str, Amounts] | None:
        taken = self._taken.pop(key, None)
        if taken is not None:
            node, amounts = taken
            for name, amount in amounts.items():
                self._loads[node][name] -= amount
        return taken


def _is_ours(pod: Pod) -> bool:
    """Whether the pod waits for us to give it a node."""
    return (
        pod.spec.scheduler_name == SCHEDULER_NAME
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
    )
