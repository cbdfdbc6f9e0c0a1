"""Last statuses that have not arrived yet, kept where a crash does not reach them."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable

from podstatus.kube.pod import PodUID
from podstatus.status.plan import PodSync
from podstatus.status.ports import Outbox, Undelivered

logger = logging.getLogger(__name__)

_LONGEST = 10.0
"""Seconds. A disk that hangs must not keep a status from being sent."""


class UndeliveredStatuses:
    """The outbox of somebody else, if there is one; what goes wrong with it stops nothing.

    The primary guarantee is another one: the node keeps what it knows of a pod until its last
    status was acknowledged.
    """

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox
        self._kept: dict[PodUID, int] = {}
        """The version that is in the outbox; 0 for one of an earlier life."""
        self._leaving: set[PodUID] = set()
        """Those of them whose time has come."""
        self._dropping: set[PodUID] = set()
        """Those of these that are being dropped now."""

    def load(self) -> Iterable[Undelivered]:
        """What an earlier life of this node could not deliver."""
        if self._outbox is None:
            return ()
        try:
            loaded = tuple(self._outbox.load())
        except Exception:
            logger.exception("outbox not read: last statuses of an earlier life may be lost")
            return ()
        self._kept.update((undelivered.uid, 0) for undelivered in loaded)
        return loaded

    async def keep(self, sync: PodSync) -> None:
        """Keep the last status of a pod, before it is sent for the first time."""
        entry = sync.entry
        if self._outbox is None or not entry.finished or not entry.unsent:
            return
        if self._kept.get(sync.uid) == entry.version:
            return
        undelivered = Undelivered(
            uid=sync.uid, namespace=entry.namespace, name=entry.name, status=entry.status
        )
        self._leaving.discard(sync.uid)
        self._kept.setdefault(sync.uid, 0)
        if await self._do(lambda outbox: outbox.keep(undelivered), "kept", sync.uid):
            self._kept[sync.uid] = entry.version

    async def drop(self, uid: PodUID) -> None:
        """Let go of a pod's status: it has arrived, or the pod is gone."""
        if uid not in self._kept or uid in self._dropping:
            return
        self._leaving.add(uid)
        self._dropping.add(uid)
        try:
            dropped = await self._do(lambda outbox: outbox.drop(uid), "dropped", uid)
        finally:
            self._dropping.discard(uid)
        if dropped:
            self._kept.pop(uid, None)
            self._leaving.discard(uid)

    async def tidy(self, known: Collection[PodUID]) -> None:
        """Let go of all pods but these, and of what could not be dropped before."""
        for uid in [uid for uid in self._kept if uid not in known or uid in self._leaving]:
            await self.drop(uid)

    async def _do(self, work: Callable[[Outbox], None], what: str, uid: PodUID) -> bool:
        """Whether it was done."""
        outbox = self._outbox
        if outbox is None:
            return False
        try:
            # It may wait for a disk, which the event loop must not.
            async with asyncio.timeout(_LONGEST):
                await asyncio.to_thread(work, outbox)
        except Exception:
            logger.exception("last status not %s in the outbox: uid=%s", what, uid)
            return False
        return True
