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

from podstatus.alerts.actions.api_errors import deed_errors
from podstatus.alerts.actions.desired_taints import taint_text
from podstatus.alerts.actions.guarded_remediation import PER_KIND, PER_SUBJECT
from podstatus.alerts.actions.name_prefix import OWN
from podstatus.alerts.ports import DeedError, TransientDeedError
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

LOOK_SECONDS = 5.0
"""Between two looks, which cost nothing while all is as it is wanted."""
_FIRST_SECONDS = 0.5
"""Until the node is known, after a start."""
_MOST_SECONDS = 300.0
"""Between two tries, after many failures."""
_Which = tuple[str, str]
"""A taint's key and effect: a node has one of each."""


class OwnTaints:
    """The service. For one event loop."""

    def __init__(
        self,
        api: NodeApi,
        own: NodeCache,
        events: NodeEvents,
        *,
        wanted: Callable[[], Sequence[Taint]],
        clock: Clock,
        monotonic: Callable[[], int] = boottime_ns,
        chance: Callable[[], float] = random,
    ) -> None:
        """`monotonic`: nanoseconds of a clock that nobody sets."""
        self._api = api
        self._own = own
        self._events = events
        self._wanted = wanted
        self._clock = clock
        self._monotonic = monotonic
        self._chance = chance
        self._lock = asyncio.Lock()
        self._left = PER_KIND
        self._left_of: dict[_Which, TokenBucket] = {}
        self._trouble = FailureLog(logger, "keeping taints of the node", expected=DeedError)
        self._backoff = Backoff(initial_seconds=LOOK_SECONDS, max_seconds=_MOST_SECONDS)

    async def run(self) -> None:
        """Keep them until cancelled."""
        while True:
            await self._clock.wait(await self._look())

    async def sync(self) -> None:
        """Put on what is wanted and may be put on, take away what nobody wants. Raises DeedError.

        One and the same is put on once in ten minutes: pods may be driven out by it.
        """
        async with self._lock:
            known = self._own.server_copy
            if known is None:
                raise TransientDeedError("the node is not registered yet")
            if any(self._missing(known)):
                with deed_errors():
                    await self._change(await self._api.get_node(known.metadata.name))

    def has(self, taint: Taint) -> bool:
        """Whether the node has it, with whatever value."""
        known = self._own.server_copy
        return known is not None and _which(taint) in {_which(it) for it in _taints(known)}

    async def _look(self) -> float:
        """Seconds until the next look. No mistake of ours ends a node."""
        if self._own.server_copy is None:
            return _FIRST_SECONDS
        try:
            await self.sync()
        except Exception as error:  # noqa: BLE001 - it is logged, and tried again
            self._trouble.failed(error)
            self._backoff = self._backoff.failed()
            return self._backoff.delay(self._chance())
        self._trouble.recovered()
        self._backoff = self._backoff.reset()
        return LOOK_SECONDS

    def _missing(self, node: Node) -> tuple[list[Taint], list[Taint]]:
        """What is to be put on now, and what is to go."""
        wanted = {_which(it): it for it in self._wanted()}
        there = {_which(it): it for it in _taints(node)}
        new = [it for which, it in wanted.items() if not _is_like(there.get(which), it)]
        gone = [it for which, it in there.items() if it.key.startswith(OWN) and which not in wanted]
        return self._in_turn(new), gone

    def _in_turn(self, taints: Sequence[Taint]) -> list[Taint]:
        """Those that may be put on now; the others when their time has come."""
        now, left, may = self._monotonic(), self._left, []
        for taint in taints:
            _, allowed = self._left_of.get(_which(taint), PER_SUBJECT).try_acquire(now)
            if allowed:
                left, allowed = left.try_acquire(now)
            if allowed:
                may.append(taint)
        return may

    async def _change(self, node: Node) -> None:
        new, gone = self._missing(node)
        self._own.update(node)
        if not new and not gone:
            return
        replaced = {_which(it) for it in (*new, *gone)}
        others = [it for it in _taints(node) if _which(it) not in replaced]
        await self._put(node, [*others, *map(self._timed, new)])
        self._spend(new)
        for taint in gone:
            told = f"take the taint {taint_text(taint)} away: done"
            self._events.normal(reasons.ALERT_ACTION, told)

    async def _put(self, node: Node, taints: Sequence[Taint]) -> None:
        """All of them are sent, so nothing may have changed since they were read."""
        meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        spec = {"taints": [to_document(taint) for taint in taints]}
        patch = msgspec.json.encode({"metadata": meta, "spec": spec})
        self._own.update(await self._api.patch_node(node.metadata.name, patch))

    def _timed(self, taint: Taint) -> Taint:
        if taint.effect != NO_EXECUTE:
            return taint
        now = Time.from_unix_nanos(self._clock.now()).truncated()
        return msgspec.structs.replace(taint, time_added=now)

    def _spend(self, taints: Sequence[Taint]) -> None:
        now = self._monotonic()
        for taint in taints:
            self._left, _ = self._left.try_acquire(now)
            own = self._left_of.get(_which(taint), PER_SUBJECT)
            self._left_of[_which(taint)], _ = own.try_acquire(now)


def _taints(node: Node) -> tuple[Taint, ...]:
    return tuple(node.spec.taints or ())


def _which(taint: Taint) -> _Which:
    return taint.key, taint.effect


def _is_like(there: Taint | None, wanted: Taint) -> bool:
    return there is not None and there.value == wanted.value
