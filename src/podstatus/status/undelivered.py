"""Last statuses that have not arrived yet, kept where a crash does not reach them."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from podstatus.kube.pod import PodUID
from podstatus.status.plan import PodSync
from podstatus.status.ports import Outbox, Undelivered

logger = logging.getLogger(__name__)


class UndeliveredStatuses:
    """The outbox of somebody else, if there is one; what goes wrong with it stops nothing.

    The primary guarantee is another one: the node keeps what it knows of a pod until its last
    status was acknowledged.
    """

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox
        self._kept: set[PodUID] = set()

    def load(self) -> Iterable[Undelivered]:
        """What an earlier life of this node could not deliver."""
        if self._outbox is None:
            return ()
        try:
            loaded = tuple(self._outbox.load())
        except Exception:
            logger.exception("outbox not read: last statuses of an earlier life may be lost")
            return ()
        self._kept.update(undelivered.uid for undelivered in loaded)
        return loaded

    async def keep(self, sync: PodSync) -> None:
        """Keep the last status of a pod, before it is sent."""
        if self._outbox is None or not sync.entry.finished:
            return
        undelivered = Undelivered(
            uid=sync.uid,
            namespace=sync.entry.namespace,
            name=sync.entry.name,
            status=sync.entry.status,
        )
        self._kept.add(sync.uid)
        await self._do(lambda outbox: outbox.keep(undelivered), "kept", sync)

    async def drop(self, sync: PodSync) -> None:
        """Let go of it: it has arrived, or the pod is gone."""
        if sync.uid not in self._kept:
            return
        self._kept.discard(sync.uid)
        await self._do(lambda outbox: outbox.drop(sync.uid), "dropped", sync)

    async def _do(self, work: Callable[[Outbox], None], what: str, sync: PodSync) -> None:
        outbox = self._outbox
        if outbox is None:
            return
        try:
            # It may wait for a disk, which the event loop must not.
            await asyncio.to_thread(work, outbox)
        except Exception:
            logger.exception("last status not %s in the outbox: %s", what, sync)
