"""A node with pods, as a source of metrics."""

from collections.abc import Mapping

from msgspec import structs

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client.rest.server_health import RequestMetrics
from podstatus.events.counts import EventCounts
from podstatus.eviction.metrics import EvictionMetrics
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.objects.usage import MemoryUsage, Usage
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.readings import CpuTimes, MachineReading, UsageSnapshot
from podstatus.observe.metrics.cadvisor_collector import CadvisorState
from podstatus.observe.metrics.kubelet_collector import KubeletMetricsSource
from podstatus.observe.metrics.watch_counters import CloseReason, WatchCounts
from podstatus.observe.ports import Freshness, HistoryCounts, NodeSummary, SyncState
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import summarize_pod
from podstatus.probes.decide.targets import find_targets
from podstatus.probes.decide.thresholds import CheckOutcome
from podstatus.probes.metrics import ProbeMetrics
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.port import RuntimePod
from podstatus.status.counters import Counters, Counts
from podstatus.status.decide.startup_measurement import PodStartup
from podstatus.status.decide.update import ContainerType, Termination
from podstatus.testing.builders import make_pod, running
from podstatus.testing.clock import FakeClock
from podstatus.workers.dependencies import WorkerMetrics
from podstatus.workers.lifecycle.state_machine import PodLifecycle, PodWorkerState
from tests.support.full_details import machine_details, pod_details
from tests.support.full_usage import a_full_snapshot
from tests.support.probed_pods import a_probe, probed_pod, shown
from tests.support.web.fake_status_view import FakeStatusView

AT = 1_700_000_000_500_000_000
STATIC = {"kubernetes.io/config.source": "file"}


def placed(pod: Pod, phase: str = "Running") -> Pod:
    """The pod on node n."""
    status = PodStatus(phase=phase, container_statuses=(running("app"),))
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name="n"), status=status)


def runtime_pod(pod: Pod) -> RuntimePod:
    """The pod in the runtime: one running container, one terminated attempt."""
    facts = PodFacts(
        sandboxes=(SandboxFacts(state=SandboxState.READY),),
        containers=(
            ContainerFacts(
                name="app",
                state=ContainerRunState.RUNNING,
                started_at=Time.from_unix_nanos(AT),
            ),
            ContainerFacts(name="app", state=ContainerRunState.EXITED),
        ),
    )
    return RuntimePod(uid=pod.uid, namespace=pod.namespace, name=pod.name, facts=facts)


class Watched:
    """A status view, and the other sources of metrics."""

    def __init__(self, pods: int = 2) -> None:
        self.clock = FakeClock()
        self.pods = [placed(make_pod(f"pod-{number}", namespace="ns")) for number in range(pods)]
        self.static = placed(make_pod("static", namespace="ns", annotations=STATIC), "Odd")
        self.all = [*self.pods, self.static]
        self.snapshot_cache = SnapshotCache()
        for pod in self.all:
            self.snapshot_cache.put(summarize_pod(pod))
        self.counters = _counted()
        self.probe_metrics = _probed(self.pods)
        self.requests = RequestMetrics()
        _request(self.requests)
        self.watching = WatchCounts()
        self.watching.connected, self.watching.events = 3, 70
        self.watching.closes.inc(CloseReason.SLOW.value)
        self.heartbeats = Heartbeats(self.clock)
        self.heartbeats.register("relist", max_silent_seconds=10)

    @property
    def node(self) -> KubeletMetricsSource:
        """The sources of the kubelet's metrics."""
        running = {pod.uid: runtime_pod(pod) for pod in self.all}
        return KubeletMetricsSource(
            node_name="n",
            counts=self.counters.snapshot,
            runtime=_runtime(),
            workers=_worked(),
            evictions=_evicted(),
            desired_pods=lambda: self.all,
            mirror_pods=lambda: [self.static],
            active_pods=lambda: self.pods,
            lifecycles=self.lives,
            running=lambda: running,
            last_relist=lambda: AT,
        )

    @property
    def agent(self) -> tuple[Counts, EventCounts, Heartbeats]:
        """What only an agent has."""
        events = EventCounts(recorded=9, sent=5, patched=1, dropped={"spam": 2})
        return self.counters.snapshot(), events, self.heartbeats

    @property
    def usage(self) -> tuple[UsageSnapshot, Mapping[PodUID, RuntimePod]]:
        """The resource usage, and the pods of the runtime."""
        memory = MemoryUsage(swap_bytes=30, swap_limit_bytes=90)
        part = {"app": Usage(at=AT, cpu_seconds=2.5, memory_bytes=500, memory=memory)}
        used = Usage(at=AT, cpu_seconds=3.5, memory_bytes=700, memory=memory)
        machine = MachineReading(
            cores=2, cpu=CpuTimes(1, 2), memory_bytes=1, memory_available_bytes=1, pids=1
        )
        snapshot = UsageSnapshot(
            at=AT,
            machine=machine,
            node=Usage(at=AT, cpu_seconds=99.0, memory_bytes=9000, memory=memory),
            pods={pod.uid: used for pod in self.all},
            containers={pod.uid: part for pod in self.all},
        )
        return snapshot, {pod.uid: runtime_pod(pod) for pod in self.all}

    @property
    def cadvisor(self) -> CadvisorState:
        """The sources of cAdvisor's page: everything is known."""
        uid = self.pods[0].uid
        snapshot = a_full_snapshot(uid)
        machine = structs.replace(
            snapshot.machine, memory=MemoryUsage(swap_limit_bytes=0), booted_at=AT
        )
        return CadvisorState(
            now=AT,
            snapshot=structs.replace(snapshot, machine=machine),
            running={uid: runtime_pod(self.pods[0])},
            details={uid: pod_details(uid, at=AT)},
            machine=machine_details(at=AT),
            info=NodeSystemInfo(machine_id="m", system_uuid="s", boot_id="b"),
        )

    def lives(self) -> list[PodLifecycle]:
        """One desired, one static and terminating, one orphan, one runtime only."""
        first, second = self.pods[:2]
        return [
            _life(first),
            structs.replace(_life(self.static), state=PodWorkerState.TERMINATING),
            structs.replace(_life(second), state=PodWorkerState.FINISHED, source_removed=True),
            structs.replace(_life(second), uid=PodUID("x"), pod=None, source_removed=True),
        ]

    # StatusView

    def nodes(self) -> Mapping[str, NodeSummary]:
        """One node."""
        load = NodeLoad(
            cpu=ResourceLoad(
                used=1.5,
                requested=0.5,
                allocatable=2.0,
                used_fraction=0.75,
                requested_fraction=0.25,
                averages={
                    "1m": LoadAverage(used=1.25, covered_seconds=60.0),
                    "5m": LoadAverage(used=1.25, covered_seconds=299.0),
                },
            ),
            pods=ResourceLoad(used=3.0),
            age_seconds=6.0,
        )
        return {"n": NodeSummary(name="n", ready=True, lease_age_seconds=4.0, load=load)}

    def sync(self) -> SyncState | None:
        """A status update in flight."""
        return SyncState(unsent=3, oldest_unsent_seconds=1.5, in_flight=2, quarantined=1, outbox=4)

    def freshness(self) -> Freshness:
        """The API server is unreachable."""
        return Freshness(server_reachable=False, server_age_seconds=30.0, runtime_age_seconds=0.5)

    @property
    def history(self) -> FakeStatusView:
        """Some of each counter."""
        view = FakeStatusView()
        view.counts = HistoryCounts(
            written=7, overflowed=2, lost_events=1, waiting=5, by_kind={"phase": 4, "event": 3}
        )
        return view


def _life(pod: Pod) -> PodLifecycle:
    return PodLifecycle(uid=pod.uid, namespace=pod.namespace, name=pod.name, pod=pod)


def _request(requests: RequestMetrics) -> None:
    """Two: the first was answered with 401, the second was not answered."""
    requests.record_response(401, "PATCH", "api:6443")
    requests.record_response(None, "PATCH", "api:6443")
    requests.seconds.observe(0.001, "PATCH", "api:6443")


def _counted() -> Counters:
    counters = Counters(max_series=1)
    for code in (3, 3, 4):
        counters.container_terminated(Termination(ContainerType.REGULAR, code, "Error"))
    counters.pending_resizes({"deferred": 2})
    counters.resizes_in_progress(1)
    counters.status_synced(0.02)
    counters.sync_failed("conflict")
    counters.pod_started(
        PodStartup(
            total_seconds=3.0,
            sli_seconds=2.0,
            is_first_network_pod=True,
            image_pulling_seconds=0.0,
            init_containers_seconds=0.0,
        )
    )
    return counters


def _runtime() -> RuntimeMetrics:
    metrics = RuntimeMetrics()
    for operation, failed in (("run_podsandbox", False), ("run_podsandbox", True)):
        metrics.runtime_operation(operation, 0.1, failed=failed)
    metrics.relist_intervals.observe(1.0)
    metrics.relists.observe(0.1)
    metrics.pod_relists.observe(0.2)
    return metrics


def _evicted() -> EvictionMetrics:
    metrics = EvictionMetrics()
    metrics.evictions.inc("memory.available")
    metrics.stats_age.observe(0.2, "memory.available")
    return metrics


def _worked() -> WorkerMetrics:
    metrics = WorkerMetrics()
    metrics.sync_durations.observe(0.3, "create")
    metrics.worker_starts.observe(0.01)
    metrics.pod_starts.observe(1.5)
    metrics.started_containers.inc("container")
    metrics.failed_container_starts.inc("container", "RunContainerError")
    metrics.recreated_pods.inc("true")
    metrics.orphans.inc()
    return metrics


def _probed(pods: list[Pod]) -> ProbeMetrics:
    metrics = ProbeMetrics()
    for pod in pods:
        probed = probed_pod(pod.name, readiness=a_probe(), liveness=a_probe())
        for target in find_targets(probed, shown(probed), terminating=False).values():
            metrics.check_finished(target, CheckOutcome.SUCCESS, 0.01)
            metrics.check_finished(target, CheckOutcome.FAILURE, 1.0)
    return metrics
