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
    Part,
    find_writer,
    foreign_write_message,
    foreign_writes,
    owned_parts,
)
from podstatus.status.decide.plan import PodSync
from podstatus.status.ports import NamesWriters, PodApi, PodEvents, PodReference
from podstatus.status.sync.state.patch_base import is_newer

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
QUICK_CORRECTIONS = 3
"""Of a pod, at once; a writer that does not give up meets the usual reconcile after that."""
QUICK_AGAIN_SECONDS = 60
"""Until there may be one more of them."""
TOLD_AGAIN_SECONDS = 600
"""Until the same of the same pod is told once more."""

Named: TypeAlias = Sequence[tuple[ForeignWrite, str | None]]
"""What was written, and by whom if that is known."""
NOTHING_NAMED: Named = ()


class ForeignWrites:
    """What the server has answered of each pod, and what others have made of it since."""

    def __init__(
        self, client: PodApi, events: PodEvents, *, elapsed: Elapsed, gates: FeatureGates
    ) -> None:
        self._client = client
        self._events = events
        self._elapsed = elapsed
        self._gates = gates
        self._known: dict[ApiUID, Pod] = {}
        """The last answers; of pods that are under way, or were and had none, nothing is known."""
        self._found: dict[ApiUID, dict[Part, ForeignWrite]] = {}
        """What is to be told once it is corrected."""
        self._quick: dict[ApiUID, TokenBucket] = {}
        self._told: dict[ApiUID, dict[tuple[Part, str | None], float]] = {}
        """When what was last told of a part and a writer."""

    def sending(self, uid: ApiUID) -> None:
        """What the watch shows of this pod may be ours from now on, until there is an answer."""
        self._known.pop(uid, None)

    def answered(self, pod: Pod) -> None:
        """The server has this, and it is as we want it."""
        self._known[ApiUID(pod.uid)] = pod

    def look(self, shown: Pod) -> bool:
        """Look at what the watch shows; whether it is to be corrected now."""
        uid = ApiUID(shown.uid)
        known = self._known.get(uid)
        if known is None or not is_newer(shown, known):
            return False
        self._known[uid] = shown
        writes = foreign_writes(known.status, shown.status, self._gates)
        if not writes:
            return False
        found = self._found.setdefault(uid, {})
        for write in writes:
            first = found.get(write.part, write)
            found[write.part] = ForeignWrite(write.part, first.before, write.after)
        return self._may_be_quick(uid)

    def has_found(self, uid: ApiUID) -> bool:
        """Whether there may be something to tell of a pod."""
        return uid in self._found

    async def name_writers(self, sync: PodSync, shown: Pod | None, *, ask: bool) -> Named:
        """What is to be told of a pod, as far as it is still so; by whom, if we may `ask`.

        To be called before it is corrected: after that nobody else is said to manage it.
        """
        found = self._found.pop(sync.api_uid, {})
        if shown is None or not found:
            return ()
        parts = owned_parts(shown.status, self._gates)
        writes = [write for part, write in found.items() if parts.get(part) != write.before]
        managed = await self._ask(sync) if ask and writes else ()
        return [(write, find_writer(write, managed)) for write in writes]

    def keep_for_later(self, uid: ApiUID, named: Named) -> None:
        """They could not be corrected; what was found first counts."""
        if named:
            found = self._found.setdefault(uid, {})
            found |= {write.part: write for write, _ in named}

    def tell(self, sync: PodSync, named: Named, pod: Pod) -> None:
        """Tell what was corrected; the pod is as the server has it now."""
        parts = owned_parts(pod.status, self._gates) if named else {}
        for write, writer in named:
            now = parts.get(write.part)
            if now != write.after:
                message = foreign_write_message(write, writer, now)
                logger.info("foreign write corrected: %s what=%s", sync, message)
                if self._is_news(sync.api_uid, write.part, writer):
                    self._warn(sync, message)

    def keep(self, known: Collection[ApiUID]) -> None:
        """Forget all objects but these."""
        for memory in (self._known, self._found, self._quick, self._told):
            for uid in memory.keys() - known:
                del memory[uid]

    def _may_be_quick(self, uid: ApiUID) -> bool:
        now = round(self._elapsed.seconds() * _SECOND)
        fresh = TokenBucket(
            burst=QUICK_CORRECTIONS, interval_ns=QUICK_AGAIN_SECONDS * _SECOND, at=now
        )
        self._quick[uid], allowed = self._quick.get(uid, fresh).try_acquire(now)
        return allowed

    def _is_news(self, uid: ApiUID, part: Part, writer: str | None) -> bool:
        """Whether it was not told of late; what was told long ago is forgotten."""
        now = self._elapsed.seconds()
        lately = {
            key: at for key, at in self._told.get(uid, {}).items() if now - at < TOLD_AGAIN_SECONDS
        }
        is_news = (part, writer) not in lately
        self._told[uid] = lately | {(part, writer): now} if is_news else lately
        return is_news

    async def _ask(self, sync: PodSync) -> Sequence[ManagedFieldsEntry]:
        """Who manages what; that it is not known keeps nothing from being corrected."""
        if not isinstance(self._client, NamesWriters):
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
