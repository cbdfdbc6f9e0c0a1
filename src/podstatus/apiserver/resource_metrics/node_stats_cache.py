"""The newest stats of nodes: read when they are needed, and retained for seconds.

Nothing is read unless a client asks. A node that does not answer has no stats; it delays the others
by no more than its own timeout, and is not asked again for a while.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.resource_metrics.decide.node_stats import (
    NodeStats,
    NodeStatsError,
    parse_node_stats,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.base.log_rate import LogRateLimiter
from podstatus.base.timeouts import run_with_timeout

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
MAX_IN_FLIGHT = 16
"""Requests to nodes, of all clients together. Each has a TLS handshake of milliseconds."""
NODE_SECONDS = 3.0
"""How long a node may take: it answers from memory."""
TOTAL_SECONDS = 10.0
"""How long all nodes of a request may take; those that were not reached then are missing."""
FRESH_SECONDS = 5.0
"""How long stats are retained. Nodes measure every 10 s."""
SILENT_SECONDS = 10.0
"""How long a node is not asked again after a timeout."""

_UNREADABLE = "cannot read the usage of nodes: count=%d first=%s error=%s"

ReadStats = Callable[[Document], Coroutine[Any, Any, bytes]]
"""Returns the stats summary of a node. Raises StatusError."""


class _Entry(msgspec.Struct, frozen=True):
    stats: NodeStats | None
    """None if the node could not be read."""
    expires: int
    """Monotonic nanoseconds."""


class NodeStatsCache:
    """Reads the stats of nodes. For one event loop."""

    def __init__(self, read: ReadStats, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._log_limiter = LogRateLimiter(clock)

    async def collect(self, nodes: Mapping[str, Callable[[], Document]]) -> dict[str, NodeStats]:
        """Return the stats of those of these nodes that can be read; they are read in this order.

        `nodes` are functions that return the Node, by name.
        """
        self._prune()
        collected = {name: self._entries[name] for name in nodes if name in self._entries}
        missing = {name: node for name, node in nodes.items() if name not in collected}
        if missing:
            await self._read_all(missing, collected)
        return {name: it.stats for name, it in collected.items() if it.stats is not None}

    async def _read_all(
        self, nodes: Mapping[str, Callable[[], Document]], collected: dict[str, _Entry]
    ) -> None:
        errors: dict[str, str] = {}

        async def read_each() -> None:
            async with asyncio.TaskGroup() as tasks:
                for name, node in nodes.items():
                    tasks.create_task(self._read_node(name, node, collected, errors))

        try:
            await run_with_timeout(TOTAL_SECONDS, self._clock, read_each())
        except TimeoutError:
            late = (name for name in nodes if name not in collected)
            errors |= dict.fromkeys(late, f"not reached within {TOTAL_SECONDS:.0f} s")
        self._log(errors)

    async def _read_node(
        self,
        name: str,
        node: Callable[[], Document],
        collected: dict[str, _Entry],
        errors: dict[str, str],
    ) -> None:
        async with self._slots:
            # Another request may have read it in the meantime.
            if name not in self._entries:
                try:
                    self._entries[name] = await self._read_entry(node())
                except (StatusError, NodeStatsError) as error:
                    errors[name] = str(error)
                    return
            collected[name] = self._entries[name]
        if collected[name].stats is None:
            errors[name] = f"no answer within {NODE_SECONDS:.0f} s"

    async def _read_entry(self, node: Document) -> _Entry:
        """Return the stats of a node, or the entry of one that does not answer."""
        try:
            body = await run_with_timeout(NODE_SECONDS, self._clock, self._read(node))
        except TimeoutError:
            return _Entry(None, self._after(SILENT_SECONDS))
        return _Entry(parse_node_stats(body), self._after(FRESH_SECONDS))

    def _after(self, seconds: float) -> int:
        return self._clock.monotonic() + round(seconds * _SECOND)

    def _log(self, errors: Mapping[str, str]) -> None:
        if errors and self._log_limiter.allow(_UNREADABLE):
            name, error = next(iter(errors.items()))
            logger.warning(_UNREADABLE, len(errors), name, error)

    def _prune(self) -> None:
        now = self._clock.monotonic()
        self._entries = {name: it for name, it in self._entries.items() if it.expires > now}
