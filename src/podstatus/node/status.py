"""Keep the status of our Node true in the API server.

Upstream: syncNodeStatus and fastNodeStatusUpdate, kubelet_node_status.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from enum import Enum
from random import random
from typing import Any

from podstatus.base.aio import WakeUp
from podstatus.base.clock import Clock, Elapsed
from podstatus.base.failure_log import FailureLog
from podstatus.events import reasons
from podstatus.kube.errors import ApiError, GoneError
from podstatus.kube.objects.node import Node
from podstatus.node.deadline import within
from podstatus.node.decide.conditions import NodeEvent, is_ready, status_event
from podstatus.node.decide.node_object import Descriptor
from podstatus.node.decide.status_patch import has_changed, status_patch
from podstatus.node.facts import NodeObserver
from podstatus.node.node_cache import OwnNode
from podstatus.node.ports import NodeApi, NodeEvents
from podstatus.node.registration import Registration
from podstatus.node.report_schedule import Reports
from podstatus.node.settings import NodeSettings

logger = logging.getLogger(__name__)

_TRIES = 5
_CALL_SECONDS = 10.0
_FAST_SECONDS = 0.1
"""How often a node looks whether it is Ready, until it is for the first time."""
_RETRY_SECONDS = 1.0
"""How long it then leaves a server alone that did not take it."""
_FAST_UNTIL = 120.0
"""Seconds after which it looks as often as any other. Upstream: nodeReadyGracePeriod."""


class _Wake(Enum):
    NOW = "something happened"
    TICK = "time has passed"


class NodeStatusService:
    """Computes the status once a period, and sends it if it changed or was long not sent."""

    def __init__(
        self,
        api: NodeApi,
        own_node: OwnNode,
        *,
        settings: NodeSettings,
        descriptor: Descriptor,
        observer: NodeObserver,
        registration: Registration,
        events: NodeEvents,
        clock: Clock,
        chance: Callable[[], float] = random,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._own = own_node
        self._settings = settings
        self._descriptor = descriptor
        self._observer = observer
        self._registration = registration
        self._events = events
        self._clock = clock
        self._beat = beat
        self._reports = Reports(settings.status_report_seconds, clock=clock, chance=chance)
        self._wake_up = WakeUp[_Wake]()
        self._trouble = FailureLog(logger, "updating the status of the node")
        self._running = Elapsed(clock)
        self._last_sync = 0.0
        self._failed = False
        self._was_ready = False
        self._was_unschedulable = False

    def now(self) -> None:
        """Look at once: something about the node's health has changed. From any thread."""
        self._wake_up.set(_Wake.NOW)

    async def run(self) -> None:
        """Keep it true until cancelled."""
        self._events.normal(reasons.STARTING, "Starting kubelet.")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            while True:
                self._beat()
                await self.sync_once()
                await self._until_due()

    async def sync_once(self) -> bool:
        """Register if need be, then bring the status up to date; whether that worked.

        Upstream: updateNodeStatus.
        """
        self._last_sync = self._running.seconds()
        self._failed = False
        for attempt in range(_TRIES):
            self._beat()
            try:
                await self._register()
                await self._update(fresh=attempt > 0)
            except ApiError as error:
                why = error
                if isinstance(error, GoneError):
                    self._forget()
            else:
                self._trouble.recovered()
                return True
        self._failed = True
        self._trouble.failed(why)
        return False

    def _forget(self) -> None:
        """The Node was deleted under us. It is registered again with the next try.

        Upstream's kubelet reports to a Node that is not there until somebody restarts it.
        """
        self._own.forget()
        self._was_unschedulable = False

    async def _register(self) -> None:
        if self._settings.register_node and self._own.known is None:
            self._tell(await self._registration.register())

    async def _update(self, *, fresh: bool) -> None:
        base = self._own.known
        if base is None or fresh:
            base = await self._call(self._api.get_node(self._settings.name))
            self._own.update(base)
        described = self._descriptor.updated(base, self._observer.facts())
        changed = has_changed(base, described.node)
        if changed or self._reports.due():
            patch = status_patch(base, described.node)
            stored = await self._call(self._api.patch_node_status(self._settings.name, patch))
            self._own.update(stored)
            self._reports.sent(changed=changed)
            self._tell(described.events)
        self._seen(described.node)

    async def _call(self, call: Coroutine[Any, Any, Node]) -> Node:
        return await within(self._clock, _CALL_SECONDS, call)

    def _seen(self, node: Node) -> None:
        self._was_ready = self._was_ready or is_ready(node.status.conditions)
        unschedulable = node.spec.unschedulable
        if unschedulable != self._was_unschedulable:
            reason = "NodeNotSchedulable" if unschedulable else "NodeSchedulable"
            self._tell([status_event(self._settings.name, reason)])
        self._was_unschedulable = unschedulable

    def _tell(self, events: Iterable[NodeEvent]) -> None:
        for event in events:
            tell = self._events.warn if event.warning else self._events.normal
            tell(event.reason, event.message)

    async def _tick(self) -> None:
        while True:
            await self._clock.wait(self._tick_seconds())
            self._wake_up.set(_Wake.TICK)

    def _tick_seconds(self) -> float:
        usual = self._settings.status_update_seconds
        return min(usual, _FAST_SECONDS) if self._is_fast() else usual

    def _is_fast(self) -> bool:
        return not self._was_ready and self._running.seconds() < _FAST_UNTIL

    async def _until_due(self) -> None:
        while True:
            woken_by = await self._wake_up.wait()
            self._beat()
            if _Wake.NOW in woken_by or self._is_due():
                return

    def _is_due(self) -> bool:
        """Whether a tick is one of the usual ones, or the node could be Ready at last."""
        if not self._is_fast():
            return True
        since = self._running.seconds() - self._last_sync
        if since >= self._settings.status_update_seconds:
            return True
        patience = _RETRY_SECONDS if self._failed else 0.0
        return since >= patience and not self._observer.problems()
