"""The port of the sync loop: a syncer, and the counts that it reports."""

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

import msgspec

from podstatus.kube.objects.pod import ApiUID


class SyncCounts(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of the sync state, in numbers of pods."""

    pods: int = 0
    """Pods with a sync state."""
    in_flight: int = 0
    """Pods that are being synced."""
    quarantined: int = 0
    """Pods whose status the API server rejects: resent when it changes, or after
    `rejected_retry_seconds`."""
    outbox: int = 0
    """Pods with an undelivered status in the outbox."""


class Syncer(Protocol):
    """Keeps the API server's copy of every status equal; used within `async with`."""

    @property
    def corrects_foreign_writes(self) -> bool:
        """Whether it checks a pod's copy on the API server as soon as the watch delivers it."""

    async def __aenter__(self) -> Self:
        """Prepare for sync batches in this event loop."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Cancel the syncs in flight."""

    async def sync_batch(self, *, full: bool) -> int:
        """Sync changed pods, or start to; with `full` also pods that differ on the API server."""

    async def wait_idle(self) -> None:
        """Wait for the syncs in flight."""

    async def drain(self) -> None:
        """Send statuses that are held back by a retry or an open circuit breaker, if possible."""

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """Return the last acknowledged version of each pod, by API UID."""

    def counts(self) -> SyncCounts:
        """Return the current numbers of pods. Thread-safe."""
