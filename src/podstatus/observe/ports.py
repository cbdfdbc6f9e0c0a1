"""The port for readers of the observed state, implemented by the agent and the observer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.observe.history.sqlite_store import HistoryEntry, NodeRecords
from podstatus.observe.summary.node_load import NodeLoad

if TYPE_CHECKING:  # it needs an event loop, which readers of these values do not
    from podstatus.observe.snapshot_cache import SnapshotCache


class HistoryCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Counters of the history writer."""

    written: int = 0
    """Entries written."""
    overflowed: int = 0
    """Changes dropped because the queue was full; the next change of the pod includes them."""
    lost_events: int = 0
    """Events dropped because the queue was full, or because of an error."""
    waiting: int = 0
    replaced: int = 0
    """Files that were lost while in use and replaced by new ones."""
    by_kind: Mapping[str, int] = {}
    """Entries written, by the kind of their transition."""
    problem: str = ""
    """Why nothing is written at the moment; empty if it is."""


class SyncState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """State of the status sync to the API server; only an agent has it."""

    unsent: int = 0
    """Pods with a status that the API server has not acknowledged."""
    oldest_unsent_seconds: float = 0.0
    in_flight: int = 0
    quarantined: int = 0
    """Pods whose status the API server rejects."""
    outbox: int = 0
    """Final statuses on disk that have not been delivered."""


class PodSyncProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """State of the status sync of one pod."""

    version: int
    """Version of the newest status; it increases with every change."""
    unsent: int = 0
    """Changes that the API server has not acknowledged."""
    oldest_unsent_seconds: float = 0.0


class TaintSummary(msgspec.Struct, frozen=True):
    """A taint without its time; as text `key=value:effect`, as kubectl shows it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The current state of a node."""

    name: str
    ready: bool = False
    reason: str = ""
    message: str = ""
    conditions: Mapping[str, str] = {}
    """Status of each condition, by type."""
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    requested: Mapping[str, str] = {}
    """Sum of the pods' requests of CPU and memory, as quantities."""
    used: Mapping[str, float] = {}
    """The usage of `load` by resource; unknown ones are missing."""
    used_fractions: Mapping[str, float] = {}
    """The used fractions of `load` by resource; unknown ones are missing."""
    load: NodeLoad = NodeLoad()
    disk_full_in_seconds: float | None = None
    """At the rate of the last hour; None: unknown, or the disk does not fill up."""
    pods: int = 0
    lease_age_seconds: float | None = None
    version: str = ""
    labels: Mapping[str, str] = {}
    unschedulable: bool = False
    """Whether it is cordoned."""
    taints: tuple[TaintSummary, ...] = ()


class Freshness(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How old the data may be."""

    server_reachable: bool = True
    server_age_seconds: float = 0.0
    """Since the last response of the API server."""
    runtime_age_seconds: float | None = None
    """Since the last relist of the runtime; only an agent has it."""
    clock_skew_seconds: float | None = None
    """Minimum difference of the local clock and the API server's; None: unknown."""


class HistoryView(Protocol):
    """Read access to the history. Only its coroutines wait."""

    @property
    def counts(self) -> HistoryCounts:
        """The counters of the history."""

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """Return the history of all pods of this name. Raises HistoryError."""

    async def node_timeline(self, node: str, *, after: int = 0) -> NodeRecords:
        """Return the history of a node. Raises HistoryError."""

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """Return the history of all pods after an ID. Raises HistoryError."""


class StatusView(Protocol):
    """Read access to the observed state, without waiting."""

    @property
    def snapshot_cache(self) -> "SnapshotCache":
        """The current state of all pods."""

    @property
    def history(self) -> HistoryView:
        """Every transition of every pod."""

    def nodes(self) -> Mapping[str, NodeSummary]:
        """Return the agent's own node, or those of the cluster."""

    def sync(self) -> SyncState | None:
        """Return the state of the status sync; None if this process sends no statuses."""

    def freshness(self) -> Freshness:
        """Return how old the data may be."""


@runtime_checkable
class SupportsPodSync(Protocol):
    """A status view of a process that sends statuses."""

    def pod_sync(self, uid: PodUID) -> PodSyncProgress | None:
        """Return the sync state of a pod's status; None if it has none."""


ContainerUsage = Mapping[PodUID, Mapping[str, Usage]]
"""Usage of running containers, by pod and container name."""


@runtime_checkable
class SupportsContainerUsage(Protocol):
    """A status view of a process that measures containers."""

    def container_usage(self) -> ContainerUsage:
        """Return the newest usage: the same object until it has been measured again."""
