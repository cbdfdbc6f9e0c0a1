"""Register the Node at the API server.

Upstream: registerWithAPIServer, kubelet_node_status.go v1.36.4.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.kube.api_errors import ApiError, ConflictError, DeniedError, GoneError
from podstatus.kube.objects.node import Node
from podstatus.node.deadline import call_with_timeout
from podstatus.node.decide.conditions import NodeEvent
from podstatus.node.decide.node_object import NodeBuilder, NodeFacts
from podstatus.node.decide.status_patch import status_patch
from podstatus.node.facts_collector import NodeFactsCollector
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi

logger = logging.getLogger(__name__)

_CALL_SECONDS = 10.0


class NodeDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The Node at the API server, what it is built from, and when."""

    api: NodeApi
    node_cache: NodeCache
    builder: NodeBuilder
    collector: NodeFactsCollector
    clock: Clock
    heartbeat: Callable[[], None]
    """Called while requests are retried, too."""


class Registration:
    """Creates the Node, or adopts an existing one."""

    def __init__(self, dependencies: NodeDependencies, *, random: Callable[[], float]) -> None:
        self._api = dependencies.api
        self._node_cache = dependencies.node_cache
        self._builder = dependencies.builder
        self._facts = dependencies.collector.facts
        self._clock = dependencies.clock
        self._heartbeat = dependencies.heartbeat
        self._random = random
        self._failure_log = FailureLog(logger, "registering the node")

    async def register(self) -> tuple[NodeEvent, ...]:
        """Register, with retries. Return the events to record; none if already registered."""
        # As upstream: 100 ms, doubled up to 7 s.
        backoff = Backoff(initial_seconds=0.1, max_seconds=7.0, jitter=0.1)
        while self._node_cache.server_copy is None:
            self._heartbeat()
            facts = self._facts()
            if facts.machine is not None:
                try:
                    events = await self.register_once(facts)
                except ApiError as error:
                    self._failure_log.failed(error)
                else:
                    self._failure_log.recovered()
                    return events
            backoff = backoff.failed()
            await self._clock.wait(backoff.delay(self._random()))
        return ()

    async def register_once(self, facts: NodeFacts) -> tuple[NodeEvent, ...]:
        """Make one attempt. Return the events to record. Raises ApiError."""
        desired = self._builder.new_node(facts)
        self._node_cache.set_draft(desired.node)
        name = desired.node.metadata.name
        try:
            stored = await self._call_with_timeout(self._api.create_node(desired.node))
        except (ConflictError, DeniedError) as error:
            self._node_cache.update(await self._adopt(name, facts, error))
            logger.info("existing node adopted: node=%s", name)
            return ()
        self._node_cache.update(stored)
        logger.info("node registered: node=%s", name)
        return desired.events

    async def _adopt(self, name: str, facts: NodeFacts, cause: ApiError) -> Node:
        try:
            existing = await self._call_with_timeout(self._api.get_node(name))
        except GoneError as error:
            # Creation was denied, and no existing Node can be adopted: report the denial.
            raise cause from error
        desired = self._builder.adopted(existing, facts)
        if desired == existing:
            return existing
        patch = status_patch(existing, desired)
        return await self._call_with_timeout(self._api.patch_node_status(name, patch))

    async def _call_with_timeout(self, call: Coroutine[Any, Any, Node]) -> Node:
        return await call_with_timeout(self._clock, _CALL_SECONDS, call)
