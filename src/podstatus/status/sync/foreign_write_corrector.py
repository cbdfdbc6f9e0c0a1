"""Detect, correct and report writes by other clients to status parts that the node owns.

See docs/decisions/0028-foreign-writers.md. Used by the sync loop only.
"""

import logging
from collections.abc import Collection, Sequence
from typing import TypeAlias

from podstatus.base.clock import Elapsed
from podstatus.base.token_bucket import TokenBucket
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.status.decide.foreign_writes import (
    FOREIGN_STATUS_WRITE,
    ForeignWrite,
    StatusPart,
    find_writer,
    foreign_write_message,
    foreign_writes,
    owned_parts,
)
from podstatus.status.decide.plan import PodSync
from podstatus.status.ports import ManagedFieldsReader, PodApi, PodEvents, PodReference
from podstatus.status.sync.state.patch_base import is_newer

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
CORRECTION_BURST = 3
"""Immediate corrections per pod; a persistent writer is then corrected by full syncs only."""
CORRECTION_REFILL_SECONDS = 60
"""Seconds until a pod gets one further immediate correction."""
REPORT_INTERVAL_SECONDS = 600
"""Seconds until the same write to the same pod is reported again."""

IdentifiedWrites: TypeAlias = Sequence[tuple[ForeignWrite, str | None]]
"""Foreign writes, each with its field manager if that is known."""
NO_WRITES: IdentifiedWrites = ()


class ForeignWriteCorrector:
    """Tracks the server's last response for each pod and the foreign writes since then.

    Not thread-safe.
    """

    def __init__(
        self, client: PodApi, events: PodEvents, *, elapsed: Elapsed, gates: FeatureGates
    ) -> None:
        self._client = client
        self._events = events
        self._elapsed = elapsed
        self._gates = gates
        self._server_copies: dict[ApiUID, Pod] = {}
        """The last responses; none for a pod in flight or whose last request had no response."""
        self._pending: dict[ApiUID, dict[StatusPart, ForeignWrite]] = {}
        """Foreign writes to report once they are corrected."""
        self._correction_buckets: dict[ApiUID, TokenBucket] = {}
        self._reported_at: dict[ApiUID, dict[tuple[StatusPart, str | None], float]] = {}
        """Time of the last report, in seconds, by part and writer."""

    def patch_started(self, uid: ApiUID) -> None:
        """Stop comparing until the response arrives: the watch may show the node's own write."""
        self._server_copies.pop(uid, None)

    def patch_applied(self, pod: Pod) -> None:
        """Record the server's copy after a successful patch."""
        self._server_copies[ApiUID(pod.uid)] = pod

    def observe(self, observed: Pod) -> bool:
        """Compare a pod from the watch; return whether to correct it immediately."""
        uid = ApiUID(observed.uid)
        previous = self._server_copies.get(uid)
        if previous is None or not is_newer(observed, previous):
            return False
        self._server_copies[uid] = observed
        writes = foreign_writes(previous.status, observed.status, self._gates)
        if not writes:
            return False
        pending = self._pending.setdefault(uid, {})
        for write in writes:
            first = pending.get(write.part, write)
            pending[write.part] = ForeignWrite(write.part, first.before, write.after)
        return self._may_correct_now(uid)

    def has_pending(self, uid: ApiUID) -> bool:
        """Whether the pod may have foreign writes to report."""
        return uid in self._pending

    async def identify_writers(
        self, sync: PodSync, observed: Pod | None, *, query_server: bool
    ) -> IdentifiedWrites:
        """Return the pod's pending writes that are still visible, with their field managers.

        The managers are only read if `query_server`. Call it before the correction, which makes
        the node the manager of these fields.
        """
        pending = self._pending.pop(sync.api_uid, {})
        if observed is None or not pending:
            return ()
        parts = owned_parts(observed.status, self._gates)
        writes = [write for part, write in pending.items() if parts.get(part) != write.before]
        managed = await self._read_managed_fields(sync) if query_server and writes else ()
        return [(write, find_writer(write, managed)) for write in writes]

    def defer(self, uid: ApiUID, writes: IdentifiedWrites) -> None:
        """Put back writes that could not be corrected; they replace newer ones of the same part."""
        if writes:
            pending = self._pending.setdefault(uid, {})
            pending |= {write.part: write for write, _ in writes}

    def report(self, sync: PodSync, writes: IdentifiedWrites, pod: Pod) -> None:
        """Log corrected writes and record events; `pod` is the server's copy after the patch."""
        parts = owned_parts(pod.status, self._gates) if writes else {}
        for write, writer in writes:
            now = parts.get(write.part)
            if now != write.after:
                message = foreign_write_message(write, writer, now)
                logger.info("foreign write corrected: %s message=%s", sync, message)
                if self._should_report(sync.api_uid, write.part, writer):
                    self._warn(sync, message)

    def retain_only(self, uids: Collection[ApiUID]) -> None:
        """Remove the state of all API objects except these."""
        for by_uid in (
            self._server_copies,
            self._pending,
            self._correction_buckets,
            self._reported_at,
        ):
            for uid in by_uid.keys() - uids:
                del by_uid[uid]

    def _may_correct_now(self, uid: ApiUID) -> bool:
        now = round(self._elapsed.seconds() * _SECOND)
        full = TokenBucket(
            burst=CORRECTION_BURST, interval_ns=CORRECTION_REFILL_SECONDS * _SECOND, at=now
        )
        bucket = self._correction_buckets.get(uid, full)
        self._correction_buckets[uid], allowed = bucket.try_acquire(now)
        return allowed

    def _should_report(self, uid: ApiUID, part: StatusPart, writer: str | None) -> bool:
        """Whether the write was not reported within the interval; drops older reports."""
        now = self._elapsed.seconds()
        recent = {
            key: at
            for key, at in self._reported_at.get(uid, {}).items()
            if now - at < REPORT_INTERVAL_SECONDS
        }
        is_new = (part, writer) not in recent
        self._reported_at[uid] = recent | {(part, writer): now} if is_new else recent
        return is_new

    async def _read_managed_fields(self, sync: PodSync) -> Sequence[ManagedFieldsEntry]:
        """Return the pod's managed fields; empty if they cannot be read."""
        if not isinstance(self._client, ManagedFieldsReader):
            return ()
        try:
            return await self._client.managed_fields(
                sync.entry.namespace, sync.entry.name, uid=sync.api_uid
            )
        except Exception as error:  # noqa: BLE001 - external port; the correction goes on without
            logger.debug("managed fields not read: %s error=%s", sync, error)
            return ()

    def _warn(self, sync: PodSync, message: str) -> None:
        reference = PodReference(sync.entry.namespace, sync.entry.name, sync.api_uid)
        try:
            self._events.warn(reference, FOREIGN_STATUS_WRITE, message)
        except Exception:
            logger.exception("event not recorded: %s", sync)
