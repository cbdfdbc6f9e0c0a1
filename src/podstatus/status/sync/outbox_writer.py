"""The outbox of undelivered terminations, which survives a crash of the agent.

Level-based: callers set what the outbox has to contain, and one task makes the disk equal to it.
"""

import asyncio
import itertools
import logging
from collections.abc import Collection, Iterable

from podstatus.kube.objects.pod import PodUID
from podstatus.status.decide.newer_status import has_terminated_container
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.status.ports import Outbox, OutboxEntry

logger = logging.getLogger(__name__)

_MAX_IO_SECONDS = 10.0
"""A hanging disk must not delay the sending of a status for longer."""
_MAX_CONCURRENT_IO = 8
"""Entries that are written at the same time: each waits for an fsync."""


class OutboxWriter:
    """Writes to the `Outbox` port, if there is one. Its errors are logged and never stop the sync.

    The outbox is the second line of defence: the node keeps a pod's state in any case until the
    pod's final status is acknowledged. Not thread-safe; `write` runs in one task at a time.
    """

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox
        self.versions: dict[PodUID, int] = {}
        """The versions that the outbox has to contain; 0 for an entry from before a restart."""
        self._stored: dict[PodUID, int] = {}
        """The versions on disk; 0 for an entry from before a restart, or being written."""
        self.unwritten: dict[PodUID, VersionedStatus | None] = {}
        """Entries that differ from the disk; None removes the entry."""
        self._failed: dict[PodUID, VersionedStatus | None] = {}
        """Entries of `unwritten` that could not be written; retried after `retain_only`."""
        self._written: dict[PodUID, asyncio.Event] = {}
        """Set after an attempt to write the entry that the outbox has to contain."""

    def __len__(self) -> int:
        """Return the number of pods that the outbox contains, or will contain. Thread-safe."""
        return len(self._stored) + sum(
            entry is not None and uid not in self._stored
            for uid, entry in tuple(self.unwritten.items())
        )

    @property
    def is_dirty(self) -> bool:
        """Whether there is an entry to write now."""
        return bool(self._next_batch())

    def load(self) -> Iterable[OutboxEntry]:
        """Return the undelivered entries from before a restart; empty if they cannot be read."""
        if self._outbox is None:
            return ()
        try:
            loaded = tuple(self._outbox.load())
        except Exception:
            logger.exception(
                "cannot read the outbox, final statuses from before a restart may be lost"
            )
            return ()
        self._stored.update((undelivered.uid, 0) for undelivered in loaded)
        self.versions.update(self._stored)
        return loaded

    # What the outbox has to contain

    def put(self, uid: PodUID, entry: VersionedStatus) -> bool:
        """Store this entry, the pod's newest one; False if there is nothing to write."""
        if self._outbox is None or not entry.unsent or self.versions.get(uid) == entry.version:
            return False
        self.unwritten[uid] = entry
        self.versions[uid] = entry.version
        return True

    def put_if_terminated(self, uid: PodUID, entry: VersionedStatus) -> None:
        """Store an entry that cannot be sent now, if a container of it has terminated."""
        if entry.finished or has_terminated_container(entry.status):
            self.put(uid, entry)

    def acknowledge(self, uid: PodUID, version: int, newest: VersionedStatus | None) -> None:
        """Remove the entry of a pod if it is not newer than the acknowledged version.

        `newest` is the pod's cached entry. The versions of a removed pod restart at 1: an entry
        with a higher version than the newest one is an old one.
        """
        if not version < self.versions.get(uid, 0) <= (0 if newest is None else newest.version):
            self.drop(uid)

    def drop(self, uid: PodUID) -> None:
        """Remove the entry of a deleted pod, whatever its version."""
        self.versions.pop(uid, None)
        if uid in self._stored:
            self.unwritten[uid] = None
        elif self.unwritten.pop(uid, None) is not None:
            self._notify(uid)

    def retain_only(self, uids: Collection[PodUID]) -> None:
        """Remove all entries except those of these pods, and retry what has failed."""
        self._failed.clear()
        for uid in [uid for uid in (*self._stored, *self.unwritten) if uid not in uids]:
            self.drop(uid)

    # The disk

    async def wait_written(self, uid: PodUID) -> None:
        """Wait until the pod's entry is on disk, or the attempt has failed or takes too long."""
        if uid not in self.unwritten or self._has_failed(uid):
            return
        written = self._written.setdefault(uid, asyncio.Event())
        try:
            async with asyncio.timeout(_MAX_IO_SECONDS):
                await written.wait()
        except TimeoutError:
            logger.error("outbox entry is not written yet, the disk hangs: uid=%s", uid)

    async def write(self) -> None:
        """Make the disk equal to what it has to contain; failures wait for `retain_only`."""
        if self._outbox is None:
            return
        try:
            while batch := self._next_batch():
                writes = (self._write(self._outbox, uid, want) for uid, want in batch.items())
                await asyncio.gather(*writes)
        finally:
            for uid in tuple(self._written):
                self._notify(uid)

    def _next_batch(self) -> dict[PodUID, VersionedStatus | None]:
        remaining = (item for item in self.unwritten.items() if not self._has_failed(item[0]))
        return dict(itertools.islice(remaining, _MAX_CONCURRENT_IO))

    def _has_failed(self, uid: PodUID) -> bool:
        return uid in self._failed and self._failed[uid] is self.unwritten.get(uid)

    async def _write(self, outbox: Outbox, uid: PodUID, desired: VersionedStatus | None) -> None:
        """Write one entry in a thread, as disk I/O must not block the event loop."""
        self._stored.setdefault(uid, 0)
        try:
            async with asyncio.timeout(_MAX_IO_SECONDS):
                if desired is None:
                    await asyncio.to_thread(outbox.drop, uid)
                else:
                    await asyncio.to_thread(outbox.store, _outbox_entry(uid, desired))
        except Exception as error:  # noqa: BLE001 - an external port
            action = "remove" if desired is None else "store"
            logger.error("cannot %s outbox entry, will retry: uid=%s error=%r", action, uid, error)
            self._failed[uid] = desired
        else:
            self._record_written(uid, desired)
        if self.unwritten.get(uid, desired) is desired:
            self._notify(uid)

    def _record_written(self, uid: PodUID, desired: VersionedStatus | None) -> None:
        self._failed.pop(uid, None)
        if desired is None:
            self._stored.pop(uid, None)
        else:
            self._stored[uid] = desired.version
        if uid in self.unwritten and self.unwritten[uid] is desired:
            del self.unwritten[uid]

    def _notify(self, uid: PodUID) -> None:
        written = self._written.pop(uid, None)
        if written is not None:
            written.set()


def _outbox_entry(uid: PodUID, entry: VersionedStatus) -> OutboxEntry:
    return OutboxEntry(
        uid=uid,
        namespace=entry.namespace,
        name=entry.name,
        status=entry.status,
        finished=entry.finished,
    )
