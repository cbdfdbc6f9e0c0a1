"""Notices what others write of that which the node owns, and tells who it was.

See docs/decisions/0028-foreign-writers.md. For the sync loop alone.
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
"""Of a pod, at once; a writer that does not give up meets the usual reconcile after that."""
CORRECTION_REFILL_SECONDS = 60
"""Until there may be one more of them."""
REPORT_INTERVAL_SECONDS = 600
"""Until the same of the same pod is told once more."""

IdentifiedWrites: TypeAlias = Sequence[tuple[ForeignWrite, str | None]]
"""What was written, and by whom if that is known."""
NO_WRITES: IdentifiedWrites = ()


class ForeignWriteCorrector:
    """What the server has answered of each pod, and what others have made of it since."""

    def __init__(
        self, client: PodApi, events: PodEvents, *, elapsed: Elapsed, gates: FeatureGates
    ) -> None:
        self._client = client
        self._events = events
        self._elapsed = elapsed
        self._gates = gates
        self._server_copies: dict[ApiUID, Pod] = {}
        """The last answers; of pods that are under way, or were and had none, nothing is known."""
        self._pending: dict[ApiUID, dict[StatusPart, ForeignWrite]] = {}
        """What is to be told once it is corrected."""
        self._correction_buckets: dict[ApiUID, TokenBucket] = {}
        self._reported_at: dict[ApiUID, dict[tuple[StatusPart, str | None], float]] = {}
        """When what was last told of a part and a writer."""

    def patch_started(self, uid: ApiUID) -> None:
        """What the watch shows of this pod may be ours from now on, until there is an answer."""
        self._server_copies.pop(uid, None)

    def patch_applied(self, pod: Pod) -> None:
        """The server has this, and it is as we want it."""
        self._server_copies[ApiUID(pod.uid)] = pod

    def observe(self, observed: Pod) -> bool:
        """Look at what the watch shows; whether it is to be corrected now."""
        uid = ApiUID(observed.uid)
        known = self._server_copies.get(uid)
        if known is None or not is_newer(observed, known):
            return False
        self._server_copies[uid] = observed
        writes = foreign_writes(known.status, observed.status, self._gates)
        if not writes:
            return False
        found = self._pending.setdefault(uid, {})
        for write in writes:
            first = found.get(write.part, write)
            found[write.part] = ForeignWrite(write.part, first.before, write.after)
        return self._may_correct_now(uid)

    def has_pending(self, uid: ApiUID) -> bool:
        """Whether there may be something to tell of a pod."""
        return uid in self._pending

    async def identify_writers(
        self, sync: PodSync, observed: Pod | None, *, query_server: bool
    ) -> IdentifiedWrites:
        """What is to be told of a pod, as far as it is still so; by whom, if we may `query_server`.

        To be called before it is corrected: after that nobody else is said to manage it.
        """
        found = self._pending.pop(sync.api_uid, {})
        if observed is None or not found:
            return ()
        parts = owned_parts(observed.status, self._gates)
        writes = [write for part, write in found.items() if parts.get(part) != write.before]
        managed = await self._read_managed_fields(sync) if query_server and writes else ()
        return [(write, find_writer(write, managed)) for write in writes]

    def defer(self, uid: ApiUID, writes: IdentifiedWrites) -> None:
        """They could not be corrected; what was found first counts."""
        if writes:
            found = self._pending.setdefault(uid, {})
            found |= {write.part: write for write, _ in writes}

    def report(self, sync: PodSync, writes: IdentifiedWrites, pod: Pod) -> None:
        """Tell what was corrected; the pod is as the server has it now."""
        parts = owned_parts(pod.status, self._gates) if writes else {}
        for write, writer in writes:
            now = parts.get(write.part)
            if now != write.after:
                message = foreign_write_message(write, writer, now)
                logger.info("foreign write corrected: %s what=%s", sync, message)
                if self._should_report(sync.api_uid, write.part, writer):
                    self._warn(sync, message)

    def retain_only(self, uids: Collection[ApiUID]) -> None:
        """Forget all objects but these."""
        for memory in (
            self._server_copies,
            self._pending,
            self._correction_buckets,
            self._reported_at,
        ):
            for uid in memory.keys() - uids:
                del memory[uid]

    def _may_correct_now(self, uid: ApiUID) -> bool:
        now = round(self._elapsed.seconds() * _SECOND)
        fresh = TokenBucket(
            burst=CORRECTION_BURST, interval_ns=CORRECTION_REFILL_SECONDS * _SECOND, at=now
        )
        self._correction_buckets[uid], allowed = self._correction_buckets.get(
            uid, fresh
        ).try_acquire(now)
        return allowed

    def _should_report(self, uid: ApiUID, part: StatusPart, writer: str | None) -> bool:
        """Whether it was not told of late; what was told long ago is forgotten."""
        now = self._elapsed.seconds()
        lately = {
            key: at
            for key, at in self._reported_at.get(uid, {}).items()
            if now - at < REPORT_INTERVAL_SECONDS
        }
        is_news = (part, writer) not in lately
        self._reported_at[uid] = lately | {(part, writer): now} if is_news else lately
        return is_news

    async def _read_managed_fields(self, sync: PodSync) -> Sequence[ManagedFieldsEntry]:
        """Who manages what; that it is not known keeps nothing from being corrected."""
        if not isinstance(self._client, ManagedFieldsReader):
            return ()
        try:
            return await self._client.managed_fields(
                sync.entry.namespace, sync.entry.name, uid=sync.api_uid
            )
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            logger.debug("writer not found out: %s error=%s", sync, error)
            return ()

    def _warn(self, sync: PodSync, message: str) -> None:
        reference = PodReference(sync.entry.namespace, sync.entry.name, sync.api_uid)
        try:
            self._events.warn(reference, FOREIGN_STATUS_WRITE, message)
        except Exception:
            logger.exception("event not recorded: %s", sync)
