"""Make our Node known to the API server.

Upstream: registerWithAPIServer, kubelet_node_status.go v1.36.4.
"""

import logging
from collections.abc import Callable, Coroutine
from random import random
from typing import Any

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.kube.errors import ApiError, ConflictError, DeniedError, GoneError
from podstatus.kube.objects.node import Node
from podstatus.node.deadline import within
from podstatus.node.decide.conditions import NodeEvent
from podstatus.node.decide.node_object import Descriptor, NodeFacts
from podstatus.node.decide.status_patch import status_patch
from podstatus.node.node_cache import OwnNode
from podstatus.node.ports import NodeApi

logger = logging.getLogger(__name__)

_CALL_SECONDS = 10.0


class Registration:
    """Creates our Node, or takes over the one that is there."""

    def __init__(
        self,
        api: NodeApi,
        own_node: OwnNode,
        descriptor: Descriptor,
        *,
        facts: Callable[[], NodeFacts],
        clock: Clock,
        chance: Callable[[], float] = random,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._own = own_node
        self._descriptor = descriptor
        self._facts = facts
        self._clock = clock
        self._chance = chance
        self._beat = beat
        self._trouble = FailureLog(logger, "registering the node")

    async def register(self) -> tuple[NodeEvent, ...]:
        """Try until it is done; what is to be told about it. Returns at once if it is known."""
        # Upstream's waits: 100 ms, and twice as long each time, to 7 s.
        backoff = Backoff(initial_seconds=0.1, max_seconds=7.0, jitter=0.1)
        while self._own.known is None:
            self._beat()
            facts = self._facts()
            if facts.machine is not None:
                try:
                    events = await self.register_once(facts)
                except ApiError as error:
                    self._trouble.failed(error)
                else:
                    self._trouble.recovered()
                    return events
            backoff = backoff.failed()
            await self._clock.wait(backoff.delay(self._chance()))
        return ()

    async def register_once(self, facts: NodeFacts) -> tuple[NodeEvent, ...]:
        """Try once; what is to be told about it. Raises ApiError."""
        described = self._descriptor.new_node(facts)
        self._own.propose(described.node)
        name = described.node.metadata.name
        try:
            stored = await self._in_time(self._api.create_node(described.node))
        except (ConflictError, DeniedError) as error:
            self._own.update(await self._take_over(name, facts, error))
            logger.info("node was registered before: %s", name)
            return ()
        self._own.update(stored)
        logger.info("node is registered: %s", name)
        return described.events

    async def _take_over(self, name: str, facts: NodeFacts, why: ApiError) -> Node:
        try:
            found = await self._in_time(self._api.get_node(name))
        except GoneError as error:
            # Who may not create nodes may have one that somebody else made, but has none.
            raise why from error
        wanted = self._descriptor.taken_over(found, facts)
        if wanted == found:
            return found
        patch = status_patch(found, wanted)
        return await self._in_time(self._api.patch_node_status(name, patch))

    async def _in_time(self, call: Coroutine[Any, Any, Node]) -> Node:
        return await within(self._clock, _CALL_SECONDS, call)
