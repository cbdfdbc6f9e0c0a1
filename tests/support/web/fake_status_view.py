"""A fake status view: a snapshot cache, a list of history entries, and a freshness."""

from collections.abc import Mapping

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import MemoryUsage, Usage
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.readings import CpuTimes, DiskReading, MachineReading, UsageSnapshot
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry, HistoryError, NodeRecords
from podstatus.observe.ports import (
    Freshness,
    HistoryCounts,
    NodeSummary,
    PodSyncProgress,
    SyncState,
)
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary
from podstatus.observe.transitions.compare_statuses import EVENT, PHASE, Transition
from podstatus.web.ports import AgentDescription

AT = Time.parse("2026-11-15T12:00:00Z").unix_nanos()
ABOUT = AgentDescription(
    version="1.2.3",
    kubernetes="v1.36.4+podstatus.1.2.3",
    python="3.11.9",
    started=AT,
    configuration={"kind": "KubeletConfiguration", "maxPods": 110},
    flags={"v": "2", "manifest-url": "CLASSIFIED", "max-pods": "110"},
)


class FakeStatusView:
    """Returns what a test sets."""

    def __init__(self) -> None:
        self.snapshot_cache = SnapshotCache()
        self.known_nodes = {"node-1": NodeSummary(name="node-1", ready=True)}
        self.sync_state: SyncState | None = SyncState(unsent=1)
        self.age = Freshness(server_age_seconds=0.25, runtime_age_seconds=0.5)
        self.counts = HistoryCounts(written=3)
        self.entries: list[HistoryEntry] = []
        self.samples: list[NodeLoadSample] = []
        self.broken = False
        self.read = 0
        """History entries read in total."""

    def nodes(self) -> Mapping[str, NodeSummary]:
        return self.known_nodes

    def sync(self) -> SyncState | None:
        return self.sync_state

    def pod_sync(self, uid: PodUID) -> PodSyncProgress | None:
        return None if self.sync_state is None else PodSyncProgress(version=7, unsent=2)

    def freshness(self) -> Freshness:
        return self.age

    @property
    def history(self) -> "FakeStatusView":
        return self

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        self._check()
        found = [it for it in self.entries if (it.namespace, it.name) == (namespace, name)]
        return [it for it in found if it.id > after]

    async def node_timeline(self, node: str, *, after: int = 0) -> NodeRecords:
        self._check()
        found = [it for it in self.entries if (it.namespace, it.name) == ("", node)]
        samples = [it for it in self.samples if it.node == node]
        return NodeRecords([it for it in found if it.id > after], samples)

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        self._check()
        found = [it for it in self.entries if it.id > after][:limit]
        self.read += len(found)
        return found

    def _check(self) -> None:
        if self.broken:
            raise HistoryError("disk full")


class FakeMachine:
    """A usage provider with a fixed snapshot."""

    def __init__(self, snapshot: UsageSnapshot | None = None) -> None:
        self.snapshot = snapshot


def a_pod(name: str = "p", namespace: str = "ns", **more: object) -> PodSummary:
    """The summary of a running, Ready pod."""
    given: dict[str, object] = {
        "uid": PodUID(f"uid-{namespace}-{name}"),
        "namespace": namespace,
        "name": name,
        "node": "node-1",
        "labels": {"app": name},
        "phase": "Running",
        "created": Time.parse("2026-11-15T11:59:00Z"),
        "conditions": (ConditionSummary(type="Ready", status="True"),),
        "containers": (
            ContainerSummary(name="app", state=parse_container_state("running"), ready=True),
        ),
    }
    return PodSummary(**(given | more))  # type: ignore[arg-type]


def make_entry(
    id: int, name: str = "p", *, kind: str = PHASE, namespace: str = "ns"
) -> HistoryEntry:
    """A history entry, `id` milliseconds after `AT`."""
    change = Transition(kind=kind, before="Pending", after="Running")
    if kind == EVENT:
        change = Transition(kind=kind, after="Normal", reason="Started", message="It was started.")
    return HistoryEntry(
        id=id,
        at=AT + id * 1_000_000,
        uid=PodUID(f"uid-{namespace}-{name}"),
        namespace=namespace,
        name=name,
        transition=change,
    )


def a_snapshot(*uids: str) -> UsageSnapshot:
    """A usage snapshot with these pods."""
    used = Usage(
        at=AT,
        cpu_seconds=1.5,
        cpu_cores=0.25,
        memory_bytes=2**20,
        disk_bytes=7,
        pids=3,
        processes=3,
    )
    return UsageSnapshot(
        at=AT,
        machine=MachineReading(
            cores=2,
            cpu=CpuTimes(busy=10.0, total=100.0),
            memory_bytes=2**30,
            memory_available_bytes=2**29,
            pids=100,
            max_pids=32768,
            booted_at=AT - 3600 * 10**9,
            disk=DiskReading(
                total_bytes=1000, used_bytes=400, available_bytes=500, inodes=10, inodes_free=4
            ),
        ),
        node=Usage(
            at=AT,
            cpu_seconds=10.0,
            cpu_cores=0.5,
            memory_bytes=2**29,
            pids=100,
            memory=MemoryUsage(limit_bytes=2**30),
        ),
        pods={PodUID(uid): used for uid in uids},
        containers={PodUID(uid): {"app": used} for uid in uids},
    )
