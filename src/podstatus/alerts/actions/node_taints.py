"""Keep the taints of our Node that are ours as the alerts want them, whatever happened meanwhile.

    taints = OwnTaints(api, own_node, events, wanted=…, clock=clock)
    tasks.create_task(taints.run())
    await taints.sync()      # at once, because an alert has changed

Ours are those whose key begins with `alerts.podstatus.dev/`. They are a level: no end of an alert
has to be remembered to have them taken away.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import random

import msgspec

from podstatus.alerts.actions.api_errors import map_api_errors
from podstatus.alerts.actions.desired_taints import format_taint
from podstatus.alerts.actions.guarded_remediation import KIND_RATE_LIMIT, SUBJECT_RATE_LIMIT
from podstatus.alerts.actions.name_prefix import PREFIX
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.base.aio import boottime_ns
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.token_bucket import TokenBucket
from podstatus.events import reasons
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.node_selection import NO_EXECUTE
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.scalars.time import Time
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi, NodeEvents

logger = logging.getLogger(__name__)

SYNC_SECONDS = 5.0
"""Between two looks, which cost nothing while all is as it is wanted."""
_STARTUP_POLL_SECONDS = 0.5
"""Until the node is known, after a start."""
_MAX_RETRY_SECONDS = 300.0
"""Between two tries, after many failures."""
_TaintKey = tuple[str, str]
"""A taint's key and effect: a node has one of each."""


class AlertTaints:
    """The service. For one event loop."""

    def __init__(
        self,
        api: NodeApi,
        node_cache: NodeCache,
        events: NodeEvents,
        *,
        desired: Callable[[], Sequence[Taint]],
        clock: Clock,
        monotonic: Callable[[], int] = boottime_ns,
        random: Callable[[], float] = random,
    ) -> None:
        """`monotonic`: nanoseconds of a clock that nobody sets."""
        self._api = api
        self._node_cache = node_cache
        self._events = events
        self._desired = desired
        self._clock = clock
        self._monotonic = monotonic
        self._random = random
        self._lock = asyncio.Lock()
        self._bucket = KIND_RATE_LIMIT
        self._taint_buckets: dict[_TaintKey, TokenBucket] = {}
        self._failures = FailureLog(logger, "keeping taints of the node", expected=ActionError)
        self._backoff = Backoff(initial_seconds=SYNC_SECONDS, max_seconds=_MAX_RETRY_SECONDS)

    async def run(self) -> None:
        """Keep them until cancelled."""
        while True:
            await self._clock.wait(await self._sync_safely())

    async def sync(self) -> None:
        """Put on what is wanted and may be put on, take away what nobody wants. Raises DeedError.

        One and the same is put on once in ten minutes: pods may be driven out by it.
        """
        async with self._lock:
            known = self._node_cache.server_copy
            if known is None:
                raise RetryableError("the node is not registered yet")
            if any(self._diff(known)):
                with map_api_errors():
                    await self._reconcile(await self._api.get_node(known.metadata.name))

    def has_taint(self, taint: Taint) -> bool:
        """Whether the node has it, with whatever value."""
        known = self._node_cache.server_copy
        return known is not None and _taint_key(taint) in {_taint_key(it) for it in _taints(known)}

    async def _sync_safely(self) -> float:
        """Seconds until the next look. No mistake of ours ends a node."""
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
        """What is to be put on now, and what is to go."""
        wanted = {_taint_key(it): it for it in self._desired()}
        there = {_taint_key(it): it for it in _taints(node)}
        new = [it for which, it in wanted.items() if not _has_same_value(there.get(which), it)]
        gone = [
            it for which, it in there.items() if it.key.startswith(PREFIX) and which not in wanted
        ]
        return self._admit(new), gone

    def _admit(self, taints: Sequence[Taint]) -> list[Taint]:
        """Those that may be put on now; the others when their time has come."""
        now, left, may = self._monotonic(), self._bucket, []
        for taint in taints:
            _, allowed = self._taint_buckets.get(_taint_key(taint), SUBJECT_RATE_LIMIT).try_acquire(
                now
            )
            if allowed:
                left, allowed = left.try_acquire(now)
            if allowed:
                may.append(taint)
        return may

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
            told = f"take the taint {format_taint(taint)} away: done"
            self._events.normal(reasons.ALERT_ACTION, told)

    async def _patch(self, node: Node, taints: Sequence[Taint]) -> None:
        """All of them are sent, so nothing may have changed since they were read."""
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
        now = self._monotonic()
        for taint in taints:
            self._bucket, _ = self._bucket.try_acquire(now)
            own = self._taint_buckets.get(_taint_key(taint), SUBJECT_RATE_LIMIT)
            self._taint_buckets[_taint_key(taint)], _ = own.try_acquire(now)


def _taints(node: Node) -> tuple[Taint, ...]:
    return tuple(node.spec.taints or ())


def _taint_key(taint: Taint) -> _TaintKey:
    return taint.key, taint.effect


def _has_same_value(there: Taint | None, wanted: Taint) -> bool:
    return there is not None and there.value == wanted.value
