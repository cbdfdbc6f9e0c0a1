"""Name the writers of corrected foreign writes, and report them as events.

A foreign write is a write by another client to a part of the status that the node owns. See
docs/explanation/foreign-status-writes.md. Used by the sync loop only.
"""

import logging
from collections.abc import Sequence
from typing import TypeAlias

from podstatus.base.clock import monotonic_seconds
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import Pod
from podstatus.status.decide.foreign_writes import (
    FOREIGN_STATUS_WRITE,
    ForeignWrite,
    find_writer,
    foreign_write_message,
    owned_parts,
)
from podstatus.status.decide.plan import PodSync
from podstatus.status.ports import ManagedFieldsReader, PodEvents, PodReference
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.state.pod_sync_state import ForeignWriteState

logger = logging.getLogger(__name__)

IdentifiedWrites: TypeAlias = Sequence[tuple[ForeignWrite, str | None]]
"""Foreign writes, each with its field manager if that is known."""


class ForeignWriteReporter:
    """Reports foreign writes once they are corrected; the pods' states hold them until then."""

    def __init__(self, context: SyncContext) -> None:
        self._clock = context.clock
        self._client = context.client
        self._events = context.events
        self._gates = context.gates

    async def identify_writers(
        self, sync: PodSync, foreign: ForeignWriteState, observed: Pod | None
    ) -> IdentifiedWrites:
        """Return the pod's pending writes that are still visible, with their field managers.

        Call it before the correction, which makes the node the manager of these fields.
        """
        if observed is None or not foreign.pending:
            return ()
        parts = owned_parts(observed.status, self._gates)
        writes = [w for part, w in foreign.pending.items() if parts.get(part) != w.before]
        managed = await self._read_managed_fields(sync) if writes else ()
        return [(write, find_writer(write, managed)) for write in writes]

    def report(
        self, sync: PodSync, foreign: ForeignWriteState, writes: IdentifiedWrites, pod: Pod
    ) -> ForeignWriteState:
        """Log corrected writes and record events; `pod` is the server's copy after the patch."""
        parts = owned_parts(pod.status, self._gates) if writes else {}
        for write, writer in writes:
            value = parts.get(write.part)
            if value != write.after:
                message = foreign_write_message(write, writer, value)
                logger.info("foreign write corrected: %s message=%s", sync, message)
                now = monotonic_seconds(self._clock)
                foreign, is_new = foreign.try_report((write.part, writer), now)
                if is_new:
                    record_event(self._events, sync, FOREIGN_STATUS_WRITE, message)
        return foreign.corrected()

    async def _read_managed_fields(self, sync: PodSync) -> Sequence[ManagedFieldsEntry]:
        """Return the pod's managed fields; empty if they cannot be read."""
        if not isinstance(self._client, ManagedFieldsReader):
            return ()
        try:
            return await self._client.managed_fields(
                sync.entry.namespace, sync.entry.name, uid=sync.api_uid
            )
        except Exception as error:  # noqa: BLE001 - external port; the correction goes on without
            logger.debug("cannot read managed fields: %s error=%s", sync, error)
            return ()


def record_event(events: PodEvents | None, sync: PodSync, reason: str, message: str) -> None:
    """Record an event of type Warning about the pod; errors of the port are logged."""
    if events is None:
        return
    try:
        events.warn(
            PodReference(sync.entry.namespace, sync.entry.name, sync.api_uid), reason, message
        )
    except Exception:
        logger.exception("cannot record event: %s", sync)
