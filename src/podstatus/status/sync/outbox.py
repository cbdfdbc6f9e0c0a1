"""Statuses that tell of an end and have not arrived, kept where a crash does not reach them."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from weakref import WeakValueDictionary

from podstatus.kube.objects.pod import PodUID
from podstatus.status.decide.newer_status import has_terminated_container
from podstatus.status.ports import Outbox, OutboxEntry
from podstatus.status.store import VersionedStatus

logger = logging.getLogger(__name__)

LatestEntry = Callable[[PodUID], VersionedStatus | None]
"""The newest status of a pod; None if it is forgotten."""

_MAX_IO_SECONDS = 10.0
"""Seconds. A disk that hangs must not keep a status from being sent."""


class OutboxWriter:
    """The outbox of somebody else, if there is one; what goes wrong with it stops nothing.

    The primary guarantee is another one: the node keeps what it knows of a pod until its last
    status was acknowledged.
    """

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox
        self._stored_versions: dict[PodUID, int] = {}
        """The version that is in the outbox; 0 for one of an earlier life."""
        self._pending_removal: set[PodUID] = set()
        """Those of them whose time has come."""
        self._removal_vetoes: dict[PodUID, list[Callable[[], bool]]] = {}
        """Those of these that are being dropped now; why not, for each who has asked for it."""
        self._locks: WeakValueDictionary[PodUID, asyncio.Lock] = WeakValueDictionary()
        """What is done about a pod is done in the order in which it was asked for."""

    def __len__(self) -> int:
        """How many pods have a status in the outbox."""
        return len(self._stored_versions)

    def load(self) -> Iterable[OutboxEntry]:
        """What an earlier life of this node could not deliver."""
        if self._outbox is None:
            return ()
        try:
            loaded = tuple(self._outbox.load())
        except Exception:
            logger.exception("outbox not read: last statuses of an earlier life may be lost")
            return ()
        self._stored_versions.update((undelivered.uid, 0) for undelivered in loaded)
        return loaded

    async def store(self, uid: PodUID, entry: VersionedStatus, latest_entry: LatestEntry) -> None:
        """Keep the last status of a pod, or a newer one, before it is sent for the first time."""
        if not entry.finished or not self._needs_store(uid, entry):
            return
        async with self._lock(uid):
            latest = latest_entry(uid)
            # A static pod that has ended may have come back; its end is to be told all the same.
            last = latest if latest is not None and latest.finished else entry
            if self._needs_store(uid, last):
                await self._store(uid, last)

    def blocked(self, entries: Mapping[PodUID, VersionedStatus]) -> list[PodUID]:
        """Those of these that tell of an end, and would be lost with this process."""
        return [
            uid
            for uid, entry in entries.items()
            if self._needs_store(uid, entry)
            and (entry.finished or has_terminated_container(entry.status))
        ]

    async def store_all(self, uids: Iterable[PodUID], latest_entry: LatestEntry) -> None:
        """Keep what is the newest of these, one after the other: they cannot be sent now."""
        for uid in uids:
            async with self._lock(uid):
                entry = latest_entry(uid)
                if entry is not None and self._needs_store(uid, entry):
                    await self._store(uid, entry)

    def _needs_store(self, uid: PodUID, entry: VersionedStatus) -> bool:
        is_kept = self._stored_versions.get(uid) == entry.version
        return self._outbox is not None and bool(entry.unsent) and not is_kept

    async def _store(self, uid: PodUID, entry: VersionedStatus) -> None:
        undelivered = OutboxEntry(
            uid=uid,
            namespace=entry.namespace,
            name=entry.name,
            status=entry.status,
            finished=entry.finished,
        )
        self._pending_removal.discard(uid)
        self._stored_versions.setdefault(uid, 0)
        if await self._run_in_thread(lambda outbox: outbox.store(undelivered), "kept", uid):
            self._stored_versions[uid] = entry.version

    async def acknowledged(
        self, uid: PodUID, entry: VersionedStatus, latest_entry: LatestEntry
    ) -> None:
        """Let go of a pod's status, if it is this one; a newer one that was kept since stays."""
        if uid not in self._stored_versions:
            return  # as of nearly all pods

        def is_newer() -> bool:
            latest = latest_entry(uid)
            # Versions begin anew with a pod that was forgotten: what is kept then is of before.
            last = 0 if latest is None else latest.version
            return entry.version < self._stored_versions.get(uid, 0) <= last

        await self._drop(uid, is_newer)

    async def drop(self, uid: PodUID) -> None:
        """Let go of a pod's status, whatever it is: the pod is gone."""
        await self._drop(uid, lambda: False)

    async def retain_only(self, uids: Collection[PodUID]) -> None:
        """Let go of all pods but these, and of what could not be dropped before."""
        for uid, version in tuple(self._stored_versions.items()):
            if uid in self._pending_removal or uid not in uids:
                await self._drop(uid, partial(self._is_other_version, uid, version))

    def _is_other_version(self, uid: PodUID, version: int) -> bool:
        return self._stored_versions.get(uid) != version

    async def _drop(self, uid: PodUID, veto: Callable[[], bool]) -> None:
        """Let go of what is kept, unless it is something else by then."""
        if uid not in self._stored_versions or veto():
            return
        self._pending_removal.add(uid)
        if uid in self._removal_vetoes:
            self._removal_vetoes[uid].append(veto)
            return  # what is left is dropped later
        self._removal_vetoes[uid] = asked = [veto]
        try:
            async with self._lock(uid):
                if all(keeps() for keeps in asked):
                    self._pending_removal.discard(uid)
                elif await self._run_in_thread(lambda outbox: outbox.drop(uid), "dropped", uid):
                    self._stored_versions.pop(uid, None)
                    self._pending_removal.discard(uid)
        finally:
            del self._removal_vetoes[uid]

    def _lock(self, uid: PodUID) -> asyncio.Lock:
        turn = self._locks.get(uid)
        if turn is None:
            turn = self._locks[uid] = asyncio.Lock()
        return turn

    async def _run_in_thread(self, work: Callable[[Outbox], None], what: str, uid: PodUID) -> bool:
        """Whether it was done."""
        outbox = self._outbox
        if outbox is None:
            return False
        try:
            # It may wait for a disk, which the event loop must not.
            async with asyncio.timeout(_MAX_IO_SECONDS):
                await asyncio.to_thread(work, outbox)
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            logger.error("last status not %s in the outbox: uid=%s error=%r", what, uid, error)
            return False
        return True
