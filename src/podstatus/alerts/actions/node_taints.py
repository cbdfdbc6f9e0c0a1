"""Reconcile the alert taints of the node with what the firing alerts request.

    taints = AlertTaints(api, node_cache, events, desired=…, clock=clock)
    tasks.create_task(taints.run())
    await taints.sync()      # at once, because an alert has changed

Alert taints are those whose key begins with `alerts.podstatus.dev/`. They are level-based: removing
one does not depend on a record of the alert that requested it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import random

import msgspec

from podstatus.alerts.actions.desired_taints import format_taint
from podstatus.alerts.actions.guarded_remediation import (
    KIND_RATE_LIMIT,
    SUBJECT_RATE_LIMIT,
    map_api_errors,
)
from podstatus.alerts.actions.name_prefix import PREFIX
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.token_bucket import TokenBucket
from podstatus.events import reasons
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.scalars.time import Time
from podstatus.kube.taints import NO_EXECUTE
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi, NodeEvents

logger = logging.getLogger(__name__)

SYNC_SECONDS = 5.0
"""Between two syncs; a sync without a difference sends no request."""
_STARTUP_POLL_SECONDS = 0.5
"""Between two checks after a start, until the node is known."""
_MAX_RETRY_SECONDS = 300.0
"""Upper bound of the retry back-off."""
_TaintKey = tuple[str, str]
"""A taint's key and effect, which are unique on a node."""


class AlertTaints:
    """Keeps the alert taints of the node. For one event loop."""

    def __init__(
        self,
        api: NodeApi,
        node_cache: NodeCache,
        events: NodeEvents,
        *,
        desired: Callable[[], Sequence[Taint]],
        clock: Clock,
        random: Callable[[], float] = random,
    ) -> None:
        self._api = api
        self._node_cache = node_cache
        self._events = events
        self._desired = desired
        self._clock = clock
        self._random = random
        self._lock = asyncio.Lock()
        self._bucket = KIND_RATE_LIMIT
        self._taint_buckets: dict[_TaintKey, TokenBucket] = {}
        self._failures = FailureLog(logger, "syncing node taints", expected=ActionError)
        self._backoff = Backoff(initial_seconds=SYNC_SECONDS, max_seconds=_MAX_RETRY_SECONDS)

    async def run(self) -> None:
        """Sync periodically, until it is cancelled."""
        while True:
            await self._clock.wait(await self._sync_safely())

    async def sync(self) -> None:
        """Add the requested taints within the rate limit and remove all others. Raises ActionError.

        One taint is added at most once in ten minutes: NoExecute evicts pods.
        """
        async with self._lock:
            node = self._node_cache.server_copy
            if node is None:
                raise RetryableError("the node is not registered yet")
            if any(self._diff(node)):
                with map_api_errors():
                    await self._reconcile(await self._api.get_node(node.metadata.name))

    def has_taint(self, taint: Taint) -> bool:
        """True if the node has a taint with this key and effect, whatever its value."""
        node = self._node_cache.server_copy
        return node is not None and _taint_key(taint) in {_taint_key(it) for it in _taints(node)}

    async def _sync_safely(self) -> float:
        """Sync and log a failure; return the seconds until the next sync."""
        if self._node_cache.server_copy is None:
            return _STARTUP_POLL_SECONDS
        try:
            await self.sync()
        except Exception as error:  # noqa: BLE001 - it is logged, and tried again
            self._failures.failed(error)
            self._backoff = self._backoff.failed()
            return self._backoff.delay(self._random())
        self._failures.recovered()
        self._backoff = self._backoff.reset()
        return SYNC_SECONDS

    def _diff(self, node: Node) -> tuple[list[Taint], list[Taint]]:
        """Return the taints to add now and the taints to remove."""
        desired = {_taint_key(it): it for it in self._desired()}
        current = {_taint_key(it): it for it in _taints(node)}
        new = [it for key, it in desired.items() if not _has_same_value(current.get(key), it)]
        gone = [
            it for key, it in current.items() if it.key.startswith(PREFIX) and key not in desired
        ]
        return self._admit(new), gone

    def _admit(self, taints: Sequence[Taint]) -> list[Taint]:
        """Return the taints that the rate limits admit now."""
        now, bucket, admitted = self._clock.monotonic(), self._bucket, []
        for taint in taints:
            _, allowed = self._taint_buckets.get(_taint_key(taint), SUBJECT_RATE_LIMIT).try_acquire(
                now
            )
            if allowed:
                bucket, allowed = bucket.try_acquire(now)
            if allowed:
                admitted.append(taint)
        return admitted

    async def _reconcile(self, node: Node) -> None:
        new, gone = self._diff(node)
        self._node_cache.update(node)
        if not new and not gone:
            return
        replaced = {_taint_key(it) for it in (*new, *gone)}
        others = [it for it in _taints(node) if _taint_key(it) not in replaced]
        await self._patch(node, [*others, *map(self._with_time_added, new)])
        self._acquire(new)
        for taint in gone:
            message = f"remove the taint {format_taint(taint)}: done"
            self._events.normal(reasons.ALERT_ACTION, message)

    async def _patch(self, node: Node, taints: Sequence[Taint]) -> None:
        """Replace all taints; a concurrent change fails the UID or resourceVersion check."""
        meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        spec = {"taints": [to_document(taint) for taint in taints]}
        patch = msgspec.json.encode({"metadata": meta, "spec": spec})
        self._node_cache.update(await self._api.patch_node(node.metadata.name, patch))

    def _with_time_added(self, taint: Taint) -> Taint:
        if taint.effect != NO_EXECUTE:
            return taint
        now = Time.from_unix_nanos(self._clock.now()).truncated()
        return msgspec.structs.replace(taint, time_added=now)

    def _acquire(self, taints: Sequence[Taint]) -> None:
        now = self._clock.monotonic()
        for taint in taints:
            self._bucket, _ = self._bucket.try_acquire(now)
            own = self._taint_buckets.get(_taint_key(taint), SUBJECT_RATE_LIMIT)
            self._taint_buckets[_taint_key(taint)], _ = own.try_acquire(now)


def _taints(node: Node) -> tuple[Taint, ...]:
    return tuple(node.spec.taints or ())


def _taint_key(taint: Taint) -> _TaintKey:
    return taint.key, taint.effect


def _has_same_value(current: Taint | None, desired: Taint) -> bool:
    return current is not None and current.value == desired.value
