"""What those who ask and those who show need: the agent has it, and the observer of a cluster."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.status_writer import HistoryCounts
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.snapshot_cache import SnapshotCache


class SyncState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the API server has what is known here; of an agent alone."""

    unsent: int = 0
    """Pods with something that the API server has not acknowledged."""
    oldest_unsent_seconds: float = 0.0
    in_flight: int = 0
    quarantined: int = 0
    """Pods whose status the API server rejects."""
    outbox: int = 0
    """Last statuses on the disk."""


class PodSyncProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the API server has the status of one pod."""

    version: int
    """Of the newest status; it grows with every change."""
    unsent: int = 0
    """Changes that the API server has not acknowledged."""
    oldest_unsent_seconds: float = 0.0


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node."""

    name: str
    ready: bool = False
    reason: str = ""
    message: str = ""
    conditions: Mapping[str, str] = {}
    """By type, the status."""
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    requested: Mapping[str, str] = {}
    """What the pods on it ask for, cpu and memory, as quantities."""
    used: Mapping[str, float] = {}
    """Measured: `cpu` in cores, `memory` in bytes, `pids`; empty where it is not known."""
    used_fractions: Mapping[str, float] = {}
    """Of what there is, from 0 to 1: `cpu`, `memory`, and `disk` of what the agent keeps."""
    disk_full_in_seconds: float | None = None
    """If it goes on as in the last hour; None: not known, or it does not fill."""
    pods: int = 0
    lease_age_seconds: float | None = None
    version: str = ""
    labels: Mapping[str, str] = {}


class Freshness(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How old what is shown may be."""

    server_reachable: bool = True
    server_age_seconds: float = 0.0
    """Since the API server was last heard."""
    runtime_age_seconds: float | None = None
    """Since the runtime was last listed; of an agent alone."""
    clock_skew_seconds: float | None = None
    """How far the clocks here and at the API server are apart, at least; None: not known."""


class StatusView(Protocol):
    """Everything that is known, for those who ask. Nothing here waits but `timeline`."""

    @property
    def snapshot_cache(self) -> SnapshotCache:
        """All pods."""

    def nodes(self) -> Mapping[str, NodeSummary]:
        """The agent's own, or those of the cluster."""

    def sync(self) -> SyncState | None:
        """None if nobody here sends statuses."""

    def freshness(self) -> Freshness:
        """How old it is."""

    def history(self) -> HistoryCounts:
        """What became of transitions."""

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """What happened to the pods of this name. Raises HistoryError."""

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """What happened on the whole after a number. Raises HistoryError."""


@runtime_checkable
class SupportsPodSync(Protocol):
    """An observatory of somebody who sends statuses, and knows how far each is."""

    def pod_sync(self, uid: PodUID) -> PodSyncProgress | None:
        """How far the status of a pod has got; None if it has none."""
