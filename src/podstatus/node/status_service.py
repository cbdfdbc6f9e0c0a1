"""Keep the Node's status at the API server up to date.

Upstream: syncNodeStatus and fastNodeStatusUpdate, kubelet_node_status.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from enum import Enum
from typing import Any

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.wake_up import WakeUp
from podstatus.events import reasons
from podstatus.kube.api_errors import ApiError, GoneError
from podstatus.kube.objects.node import Node
from podstatus.kube.scalars.time import Time
from podstatus.node.deadline import call_with_timeout
from podstatus.node.decide.conditions import NodeEvent, is_ready, status_event, with_agent_stopped
from podstatus.node.decide.status_patch import has_changed, status_patch
from podstatus.node.ports import NodeEvents
from podstatus.node.registration import NodeDependencies, Registration
from podstatus.node.settings import NodeSettings

logger = logging.getLogger(__name__)

_MAX_ATTEMPTS = 5
_CALL_SECONDS = 10.0
_STOP_SECONDS = 1.0
"""Statuses and events are sent at the same time, for up to 2 s."""
_FAST_SECONDS = 0.1
"""Interval of readiness checks until the node is Ready for the first time."""
_RETRY_SECONDS = 1.0
"""Wait after a failed update during that time."""
_FAST_PERIOD_SECONDS = 120.0
"""Seconds after which the regular interval applies. Upstream: nodeReadyGracePeriod."""


class _WakeReason(Enum):
    NOW = "something happened"
    TICK = "time has passed"


class NodeStatusService:
    """Computes the status periodically; sends it if it changed or a report is due."""

    def __init__(
        self,
        settings: NodeSettings,
        dependencies: NodeDependencies,
        registration: Registration,
        *,
        events: NodeEvents,
        random: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._api = dependencies.api
        self._node_cache = dependencies.node_cache
        self._builder = dependencies.builder
        self._collector = dependencies.collector
        self._clock = clock = dependencies.clock
        self._heartbeat = dependencies.heartbeat
        self._registration = registration
        self._events = events
        self._report_schedule = ReportSchedule(
            settings.status_report_seconds, clock=clock, random=random
        )
        self._wake_up = WakeUp[_WakeReason]()
        self._failure_log = FailureLog(logger, "updating the node status")
        self._started_at = clock.monotonic()
        self._last_sync = self._started_at
        self._failed = False
        self._was_ready = False
        self._was_unschedulable = False

    def request_sync(self) -> None:
        """Update the status soon, since the node's health changed. Thread-safe."""
        self._wake_up.set(_WakeReason.NOW)

    async def run(self) -> None:
        """Update the status until cancelled."""
        self._events.normal(reasons.STARTING, "Starting kubelet.")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            while True:
                self._heartbeat()
                await self.sync_once()
                await self._wait_until_due()

    async def sync_once(self) -> bool:
        """Register if necessary, then update the status. Return whether it succeeded.

        Upstream: updateNodeStatus.
        """
        self._last_sync = self._clock.monotonic()
        self._failed = False
        for attempt in range(_MAX_ATTEMPTS):
            self._heartbeat()
            try:
                if self._settings.register_node and self._node_cache.server_copy is None:
                    self._record_events(await self._registration.register())
                await self._update(fresh=attempt > 0)
            except ApiError as error:
                last_error = error
                if isinstance(error, GoneError):
                    self._forget_node()
            else:
                self._failure_log.recovered()
                return True
        self._failed = True
        self._failure_log.failed(last_error)
        return False

    async def report_stop(self, message: str) -> bool:
        """Add a condition that explains why the Node will be silent; return whether it succeeded.

        For an orderly stop, after `run` has ended: one attempt of at most 1 s. Other conditions
        are not changed. Upstream has none: its kubelet just stops.
        """
        base = self._node_cache.server_copy
        if base is None:
            return False
        now = Time.from_unix_nanos(self._clock.now()).truncated()
        conditions = with_agent_stopped(base.status.conditions or (), message, now)
        status = structs.replace(base.status, conditions=conditions)
        patch = status_patch(base, structs.replace(base, status=status))
        call = self._api.patch_node_status(self._settings.name, patch)
        try:
            self._node_cache.update(await call_with_timeout(self._clock, _STOP_SECONDS, call))
        except ApiError as error:
            logger.info("cannot report the stop of the agent: error=%s", error)
            return False
        return True

    def _forget_node(self) -> None:
        """Drop a Node that another client deleted; the next attempt registers it again.

        Upstream's kubelet keeps failing until it is restarted.
        """
        self._node_cache.forget()
        self._was_unschedulable = False

    async def _update(self, *, fresh: bool) -> None:
        base = self._node_cache.server_copy
        if base is None or fresh:
            base = await self._call_with_timeout(self._api.get_node(self._settings.name))
            self._node_cache.update(base)
        desired = self._builder.updated(base, self._collector.facts())
        changed = has_changed(base, desired.node)
        if changed or self._report_schedule.is_due():
            patch = status_patch(base, desired.node)
            stored = await self._call_with_timeout(
                self._api.patch_node_status(self._settings.name, patch)
            )
            self._node_cache.update(stored)
            self._report_schedule.mark_sent(changed=changed)
            self._record_events(desired.events)
        self._record_node(desired.node)

    async def _call_with_timeout(self, call: Coroutine[Any, Any, Node]) -> Node:
        return await call_with_timeout(self._clock, _CALL_SECONDS, call)

    def _record_node(self, node: Node) -> None:
        self._was_ready = self._was_ready or is_ready(node.status.conditions)
        unschedulable = node.spec.unschedulable
        if unschedulable != self._was_unschedulable:
            reason = "NodeNotSchedulable" if unschedulable else "NodeSchedulable"
            self._record_events([status_event(self._settings.name, reason)])
        self._was_unschedulable = unschedulable

    def _record_events(self, events: Iterable[NodeEvent]) -> None:
        for event in events:
            record = self._events.warn if event.warning else self._events.normal
            record(event.reason, event.message)

    async def _tick(self) -> None:
        while True:
            await self._clock.wait(self._tick_seconds())
            self._wake_up.set(_WakeReason.TICK)

    def _tick_seconds(self) -> float:
        interval = self._settings.status_update_seconds
        return min(interval, _FAST_SECONDS) if self._is_fast() else interval

    def _is_fast(self) -> bool:
        return not self._was_ready and self._seconds_since(self._started_at) < _FAST_PERIOD_SECONDS

    def _seconds_since(self, monotonic: int) -> float:
        return (self._clock.monotonic() - monotonic) / 1e9

    async def _wait_until_due(self) -> None:
        while True:
            woken_by = await self._wake_up.wait()
            self._heartbeat()
            if _WakeReason.NOW in woken_by or self._is_due():
                return

    def _is_due(self) -> bool:
        """Whether the regular interval has passed, or the node may have become Ready."""
        if not self._is_fast():
            return True
        since = self._seconds_since(self._last_sync)
        if since >= self._settings.status_update_seconds:
            return True
        wait = _RETRY_SECONDS if self._failed else 0.0
        return since >= wait and not self._collector.problems()


class ReportSchedule:
    """Decides when an unchanged status is reported again.

    After a change the next report is shifted by a random half period, earlier or later, so that
    nodes that changed together do not report together. Later reports keep that offset.
    Upstream: tryUpdateNodeStatus and calculateDelay, kubelet_node_status.go v1.36.4.
    """

    def __init__(self, period: float, *, clock: Clock, random: Callable[[], float]) -> None:
        self._period = period
        self._random = random
        self._clock = clock
        self._due_at = clock.monotonic()
        self._is_first = True

    def is_due(self) -> bool:
        """Whether a report is due now."""
        return self._clock.monotonic() >= self._due_at

    def mark_sent(self, *, changed: bool) -> None:
        """Record that the server has accepted a report."""
        delay = self._period * (self._random() - 0.5) if changed or self._is_first else 0.0
        self._is_first = False
        self._due_at = self._clock.monotonic() + round((self._period + delay) * 1e9)
