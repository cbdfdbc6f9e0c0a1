"""Statuses that tell of an end and have not arrived, kept where a crash does not reach them."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from weakref import WeakValueDictionary

from podstatus.kube.objects.pod import PodUID
from podstatus.status.decide.newer_status import tells_an_end
from podstatus.status.ports import Outbox, Undelivered
from podstatus.status.store import VersionedStatus

logger = logging.getLogger(__name__)

Newest = Callable[[PodUID], VersionedStatus | None]
"""The newest status of a pod; None if it is forgotten."""

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
        self._dropping: dict[PodUID, list[Callable[[], bool]]] = {}
        """Those of these that are being dropped now; why not, for each who has asked for it."""
        self._turns: WeakValueDictionary[PodUID, asyncio.Lock] = WeakValueDictionary()
        """What is done about a pod is done in the order in which it was asked for."""

    def __len__(self) -> int:
        """How many pods have a status in the outbox."""
        return len(self._kept)

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

    async def keep(self, uid: PodUID, entry: VersionedStatus, newest: Newest) -> None:
        """Keep the last status of a pod, or a newer one, before it is sent for the first time."""
        if not entry.finished or not self._is_unkept(uid, entry):
            return
        async with self._turn(uid):
            latest = newest(uid)
            # A static pod that has ended may have come back; its end is to be told all the same.
            last = latest if latest is not None and latest.finished else entry
            if self._is_unkept(uid, last):
                await self._keep(uid, last)

    def waiting(self, entries: Mapping[PodUID, VersionedStatus]) -> list[PodUID]:
        """Those of these that tell of an end, and would be lost with this process."""
        return [
            uid
            for uid, entry in entries.items()
            if self._is_unkept(uid, entry) and (entry.finished or tells_an_end(entry.status))
        ]

    async def keep_all(self, uids: Iterable[PodUID], newest: Newest) -> None:
        """Keep what is the newest of these, one after the other: they cannot be sent now."""
        for uid in uids:
            async with self._turn(uid):
                entry = newest(uid)
                if entry is not None and self._is_unkept(uid, entry):
                    await self._keep(uid, entry)

    def _is_unkept(self, uid: PodUID, entry: VersionedStatus) -> bool:
        is_kept = self._kept.get(uid) == entry.version
        return self._outbox is not None and bool(entry.unsent) and not is_kept

    async def _keep(self, uid: PodUID, entry: VersionedStatus) -> None:
        undelivered = Undelivered(
            uid=uid,
            namespace=entry.namespace,
            name=entry.name,
            status=entry.status,
            finished=entry.finished,
        )
        self._leaving.discard(uid)
        self._kept.setdefault(uid, 0)
        if await self._do(lambda outbox: outbox.keep(undelivered), "kept", uid):
            self._kept[uid] = entry.version

    async def arrived(self, uid: PodUID, entry: VersionedStatus, newest: Newest) -> None:
        """Let go of a pod's status, if it is this one; a newer one that was kept since stays."""
        if uid not in self._kept:
            return  # as of nearly all pods

        def is_newer() -> bool:
            latest = newest(uid)
            # Versions begin anew with a pod that was forgotten: what is kept then is of before.
            last = 0 if latest is None else latest.version
            return entry.version < self._kept.get(uid, 0) <= last

        await self._drop(uid, is_newer)

    async def drop(self, uid: PodUID) -> None:
        """Let go of a pod's status, whatever it is: the pod is gone."""
        await self._drop(uid, lambda: False)

    async def tidy(self, known: Collection[PodUID]) -> None:
        """Let go of all pods but these, and of what could not be dropped before."""
        for uid, version in tuple(self._kept.items()):
            if uid in self._leaving or uid not in known:
                await self._drop(uid, partial(self._is_not, uid, version))

    def _is_not(self, uid: PodUID, version: int) -> bool:
        return self._kept.get(uid) != version

    async def _drop(self, uid: PodUID, is_another: Callable[[], bool]) -> None:
        """Let go of what is kept, unless it is something else by then."""
        if uid not in self._kept or is_another():
            return
        self._leaving.add(uid)
        if uid in self._dropping:
            self._dropping[uid].append(is_another)
            return  # what is left is dropped later
        self._dropping[uid] = asked = [is_another]
        try:
            async with self._turn(uid):
                if all(keeps() for keeps in asked):
                    self._leaving.discard(uid)
                elif await self._do(lambda outbox: outbox.drop(uid), "dropped", uid):
                    self._kept.pop(uid, None)
                    self._leaving.discard(uid)
        finally:
            del self._dropping[uid]

    def _turn(self, uid: PodUID) -> asyncio.Lock:
        turn = self._turns.get(uid)
        if turn is None:
            turn = self._turns[uid] = asyncio.Lock()
        return turn

    async def _do(self, work: Callable[[Outbox], None], what: str, uid: PodUID) -> bool:
        """Whether it was done."""
        outbox = self._outbox
        if outbox is None:
            return False
        try:
            # It may wait for a disk, which the event loop must not.
            async with asyncio.timeout(_LONGEST):
                await asyncio.to_thread(work, outbox)
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            logger.error("last status not %s in the outbox: uid=%s error=%r", what, uid, error)
            return False
        return True
