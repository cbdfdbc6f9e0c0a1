"""The outbox of undelivered terminations, which survives a crash of the agent."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from weakref import WeakValueDictionary

from podstatus.kube.objects.pod import PodUID
from podstatus.status.decide.newer_status import has_terminated_container
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.status.ports import Outbox, OutboxEntry

logger = logging.getLogger(__name__)

LatestEntry = Callable[[PodUID], VersionedStatus | None]
"""Returns the pod's newest status; None if the pod was removed."""

_MAX_IO_SECONDS = 10.0
"""Seconds. A hanging disk must not delay the sending of a status for longer."""


class OutboxWriter:
    """Writes to the `Outbox` port, if there is one. Its errors are logged and never stop the sync.

    The outbox is the second line of defence: the node keeps a pod's state in any case until the
    pod's final status is acknowledged. Not thread-safe.
    """

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox
        self._stored_versions: dict[PodUID, int] = {}
        """The version in the outbox; 0 for an entry from before a restart."""
        self._pending_removal: set[PodUID] = set()
        """Pods whose entry is to be removed."""
        self._removal_vetoes: dict[PodUID, list[Callable[[], bool]]] = {}
        """Removals in progress: UID -> the callers' veto predicates."""
        self._locks: WeakValueDictionary[PodUID, asyncio.Lock] = WeakValueDictionary()
        """One lock per pod: its operations run in the order of the calls."""

    def __len__(self) -> int:
        """Return the number of pods in the outbox."""
        return len(self._stored_versions)

    def load(self) -> Iterable[OutboxEntry]:
        """Return the undelivered entries from before a restart; empty if they cannot be read."""
        if self._outbox is None:
            return ()
        try:
            loaded = tuple(self._outbox.load())
        except Exception:
            logger.exception(
                "cannot read the outbox, final statuses from before the restart may be lost"
            )
            return ()
        self._stored_versions.update((undelivered.uid, 0) for undelivered in loaded)
        return loaded

    async def store(self, uid: PodUID, entry: VersionedStatus, latest_entry: LatestEntry) -> None:
        """Store the pod's final status, or a newer one, before it is first sent."""
        if not entry.finished or not self._needs_store(uid, entry):
            return
        async with self._lock(uid):
            latest = latest_entry(uid)
            # A finished static pod may have come back; its final status is delivered anyway.
            final = latest if latest is not None and latest.finished else entry
            if self._needs_store(uid, final):
                await self._store(uid, final)

    def blocked(self, entries: Mapping[PodUID, VersionedStatus]) -> list[PodUID]:
        """Return the pods with a termination that is neither delivered nor in the outbox."""
        return [
            uid
            for uid, entry in entries.items()
            if self._needs_store(uid, entry)
            and (entry.finished or has_terminated_container(entry.status))
        ]

    async def store_all(self, uids: Iterable[PodUID], latest_entry: LatestEntry) -> None:
        """Store the newest statuses of these pods, one at a time: they cannot be sent now."""
        for uid in uids:
            async with self._lock(uid):
                entry = latest_entry(uid)
                if entry is not None and self._needs_store(uid, entry):
                    await self._store(uid, entry)

    def _needs_store(self, uid: PodUID, entry: VersionedStatus) -> bool:
        is_stored = self._stored_versions.get(uid) == entry.version
        return self._outbox is not None and bool(entry.unsent) and not is_stored

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
        if await self._run_in_thread(lambda outbox: outbox.store(undelivered), "store", uid):
            self._stored_versions[uid] = entry.version

    async def acknowledged(
        self, uid: PodUID, entry: VersionedStatus, latest_entry: LatestEntry
    ) -> None:
        """Remove the pod's entry if it is not newer than the acknowledged one."""
        if uid not in self._stored_versions:
            return  # the case for nearly all pods

        def is_newer() -> bool:
            latest = latest_entry(uid)
            # The versions of a removed pod restart at 1: a higher stored version is an old one.
            newest = 0 if latest is None else latest.version
            return entry.version < self._stored_versions.get(uid, 0) <= newest

        await self._drop(uid, is_newer)

    async def drop(self, uid: PodUID) -> None:
        """Remove the entry of a deleted pod, whatever its version."""
        await self._drop(uid, lambda: False)

    async def retain_only(self, uids: Collection[PodUID]) -> None:
        """Remove all entries except those of these pods, and retry failed removals."""
        for uid, version in tuple(self._stored_versions.items()):
            if uid in self._pending_removal or uid not in uids:
                await self._drop(uid, partial(self._is_other_version, uid, version))

    def _is_other_version(self, uid: PodUID, version: int) -> bool:
        return self._stored_versions.get(uid) != version

    async def _drop(self, uid: PodUID, veto: Callable[[], bool]) -> None:
        """Remove the pod's entry, unless `veto` is true, now or when the lock is acquired."""
        if uid not in self._stored_versions or veto():
            return
        self._pending_removal.add(uid)
        if uid in self._removal_vetoes:
            self._removal_vetoes[uid].append(veto)
            return  # the removal in progress handles it, or `retain_only` later
        self._removal_vetoes[uid] = vetoes = [veto]
        try:
            async with self._lock(uid):
                if all(is_vetoed() for is_vetoed in vetoes):
                    self._pending_removal.discard(uid)
                elif await self._run_in_thread(lambda outbox: outbox.drop(uid), "remove", uid):
                    self._stored_versions.pop(uid, None)
                    self._pending_removal.discard(uid)
        finally:
            del self._removal_vetoes[uid]

    def _lock(self, uid: PodUID) -> asyncio.Lock:
        lock = self._locks.get(uid)
        if lock is None:
            lock = self._locks[uid] = asyncio.Lock()
        return lock

    async def _run_in_thread(
        self, work: Callable[[Outbox], None], action: str, uid: PodUID
    ) -> bool:
        """Return whether the work succeeded; log an error otherwise."""
        outbox = self._outbox
        if outbox is None:
            return False
        try:
            # In a thread: disk I/O must not block the event loop.
            async with asyncio.timeout(_MAX_IO_SECONDS):
                await asyncio.to_thread(work, outbox)
        except Exception as error:  # noqa: BLE001 - an external port
            logger.error("cannot %s outbox entry: uid=%s error=%r", action, uid, error)
            return False
        return True
