"""Build the pod services: pod manager, mux, workers, probes, resize, status manager."""

from collections.abc import Callable
from functools import partial

from podstatus.agent.compose.dependencies import AgentDependencies, Signal
from podstatus.agent.compose.eviction import build_eviction_manager
from podstatus.agent.compose.held_back_phases import HeldBackPhases
from podstatus.agent.compose.history import RecordingCounters
from podstatus.agent.compose.removed_pods import RemovedPods
from podstatus.agent.compose.snapshot_updater import SnapshotUpdater
from podstatus.agent.compose.status_events import StatusEvents
from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.checkpoint.outbox_files import FileOutbox
from podstatus.client.typed.pods import HttpPodApi
from podstatus.events import reasons
from podstatus.events.object_references import container_reference
from podstatus.eviction.records import EvictionRecords
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.node.machine.usage import NodeUsage
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.probes.check_dispatch import ProbeChecker
from podstatus.probes.http_hook import send_hook_request
from podstatus.probes.metrics import ProbeMetrics
from podstatus.probes.workers import ProbeWorkers
from podstatus.runtime.port import ProbeResult, ReportsProbes, ResizesPods, Runtime
from podstatus.sources.decide.pod_changes import PodConfigChange
from podstatus.sources.mux import Mux, RejectedPod
from podstatus.status.manager import StatusManager
from podstatus.status.ports import OutboxEntry
from podstatus.status.startup_latency_tracker import StartupLatencyTracker
from podstatus.workers.action_executor import ActionExecutor
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult, admit
from podstatus.workers.admission.resource_fit import RequestedResources, pod_capacity
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import PodAdmission, RequestTotals
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.allocation.resize_controller import ResizeController
from podstatus.workers.dependencies import WorkerDependencies, WorkerMetrics, WorkerPolicy
from podstatus.workers.dispatcher import PodDispatcher
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lifecycle.pod_registry import (
    DynamicResources,
    NoDynamicResources,
    PodRegistry,
)
from podstatus.workers.lifecycle.state_machine import PodLifecycle
from podstatus.workers.lifecycle_hooks import HookRunner
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.probe_result_store import ProbeResultStore
from podstatus.workers.resize.decision import ResizeDecision, decide_resize
from podstatus.workers.shutdown.manager import ShutdownManager


class PodServices:
    """The pod services of a node, connected with each other."""

    def __init__(
        self, dependencies: AgentDependencies, source_names: frozenset[str], usage: NodeUsage
    ) -> None:
        """`source_names`: the sources that must deliver before pods are cleaned up."""
        settings, clock, recorder = dependencies.settings, dependencies.clock, dependencies.recorder
        runtime, signals = dependencies.counted_runtime, dependencies.signals
        root, history = dependencies.root, dependencies.history
        state = FileState(root.folder("checkpoints"))
        self._recorder = recorder
        self._signals = signals
        self.counters = RecordingCounters(history)
        self.worker_metrics, self.probe_metrics = WorkerMetrics(), ProbeMetrics()
        self.pod_manager = dependencies.pod_manager
        changes: Signal[[PodConfigChange]] = Signal()
        rejections: Signal[[RejectedPod]] = Signal()
        self.mux = Mux(source_names, changes, on_rejected=rejections)
        self.pod_registry = PodRegistry(
            self.pod_manager,
            all_sources_ready=self.all_sources_ready,
            dynamic_resources=_dynamic_resources(dependencies.runtime),
        )
        self.startup_latency = StartupLatencyTracker(self.counters, clock=clock)
        self.status_manager = StatusManager(
            HttpPodApi(dependencies.clients.pods),
            self.pod_manager,
            self.pod_registry,
            startup_latency=self.startup_latency,
            observer=self.counters,
            events=StatusEvents(
                recorder, settings.node_name, on_foreign_write=history.record_foreign_write
            ),
            outbox=FileOutbox(root.folder("outbox"), OutboxEntry),
            state=state,
            clock=clock,
            gates=settings.feature_gates,
            recompute_status=self._recompute_status,
            heartbeat=dependencies.heartbeats.register("status", max_silent_seconds=60),
        )
        self.held_back_phases = HeldBackPhases(self.pod_manager, self.pod_registry)
        self.snapshot_updater = SnapshotUpdater(
            SnapshotCache(), self.pod_manager, self.status_manager, self.held_back_phases
        )
        self.removed_pods = RemovedPods(
            history,
            self.pod_manager,
            self.pod_registry,
            dependencies.pleg,
            all_sources_ready=self.all_sources_ready,
            clock=clock,
        )
        self.held_back_phases.forward_to(
            tuple(filter(None, (self.snapshot_updater, history.writer)))
        )
        self.pod_registry.add_listener(self._lifecycle_changed)
        for notifier in (history.downtime, self.removed_pods, self.held_back_phases):
            if notifier is not None:
                self.status_manager.add_notifier(notifier)
        policy = WorkerPolicy(
            sync_frequency=settings.sync_frequency,
            keep_terminated_pod_volumes=settings.keep_terminated_pod_volumes,
            gates=settings.feature_gates,
        )
        probes_itself = isinstance(runtime, ReportsProbes)
        # ProbeWorkers record an event for each failed check themselves, as upstream does.
        unhealthy = self._report_unhealthy if probes_itself else _already_reported
        self.probe_results = ProbeResultStore(
            self.status_manager, signals.pod_changed, unhealthy, _prober_start(dependencies)
        )
        self.probes = ProbeWorkers(
            ProbeChecker(runtime, clock=clock),
            recorder,
            on_result=self.probe_results.record,
            clock=clock,
            metrics=self.probe_metrics,
        )
        shared = WorkerDependencies(
            runtime=runtime,
            pleg=dependencies.pleg,
            pod_manager=self.pod_manager,
            registry=self.pod_registry,
            statuses=self.status_manager,
            recorder=recorder,
            clock=clock,
            policy=policy,
            metrics=self.worker_metrics,
        )
        self.allocations = AllocationManager(state)
        actuation = ResizeActuator(shared, self.allocations, on_completed=signals.resources_freed)
        containers = ActionExecutor(
            shared,
            crash_loop_backoff=CrashLoopBackoff(max_seconds=settings.max_container_restart_period),
            hooks=HookRunner(shared, http_get=send_hook_request, host_ips=dependencies.host_ips),
            on_init_started=self.startup_latency.record_init_container_started,
            actuator=actuation,
        )
        self.pod_syncer = PodSyncer(
            shared,
            executor=containers,
            actuator=actuation,
            probe_results=self.probe_results,
            probe_workers=None if probes_itself else self.probes,
            host_ips=dependencies.host_ips,
            on_init_finished=self.startup_latency.record_init_container_finished,
        )
        evictions = EvictionRecords(root.folder("evictions"))
        self.workers = PodWorkers(
            shared,
            self.pod_syncer,
            on_finished=self._pod_finished,
            find_eviction=evictions.find,
        )
        self.eviction = build_eviction_manager(
            dependencies,
            shared,
            self.workers,
            usage,
            evictions,
            self.allocations,
            self.all_sources_ready,
        )
        signals.pod_changed.connect(self.workers.wake)
        self.shutdown = ShutdownManager(
            shared,
            self.workers,
            settings.shutdown_periods,
            record_event=dependencies.node_events.normal,
            on_change=signals.node_changed,
        )
        occupancy = RequestTotals(self.pod_registry, self.allocations)
        self.resize_controller = ResizeController(
            shared,
            self.allocations,
            occupancy,
            decide=partial(_decide_resize, dependencies),
            wake=signals.pod_changed,
            all_sources_ready=self.all_sources_ready,
            heartbeat=dependencies.heartbeats.register("resizes", max_silent_seconds=400),
        )
        signals.resources_freed.connect(self.resize_controller.retry)
        self.dispatcher = PodDispatcher(
            shared,
            self.workers,
            PodAdmission(
                self.allocations, occupancy, partial(_admit, dependencies, self._rejection_for)
            ),
            self.resize_controller,
            startup_latency=self.startup_latency,
            on_mirror=signals.mirror_changed,
            on_pod_change=self._pod_changed,
        )
        changes.connect(self.dispatcher.handle)
        rejections.connect(self.dispatcher.report_rejected)
        self.housekeeping = Housekeeping(
            shared,
            self.workers,
            self.pod_syncer,
            all_sources_ready=self.all_sources_ready,
            heartbeat=dependencies.heartbeats.register("housekeeping", max_silent_seconds=60),
        )

    def all_sources_ready(self) -> bool:
        """True once every source has delivered its pods."""
        return self.mux.all_sources_ready

    def is_snapshot_complete(self) -> bool:
        """True while the snapshot cache has all pods of all sources."""
        return self.mux.all_sources_ready and self.snapshot_updater.is_idle

    def _rejection_for(self, pod: Pod) -> AdmissionRejected | None:
        """The rejection of a new pod because of a shutdown or of pressure."""
        if (rejected := self.shutdown.rejection_for(pod)) is not None:
            return rejected
        if (rejection := self.eviction.rejection_for(pod)) is None:
            return None
        return AdmissionRejected(reason=rejection.reason, message=rejection.message)

    def _recompute_status(self, uid: PodUID) -> bool:
        return self.dispatcher.resync(uid)

    def _pod_changed(self, uid: PodUID) -> None:
        self._lifecycle_changed(uid)
        self.snapshot_updater.pod_changed(uid)

    def _lifecycle_changed(self, uid: PodUID) -> None:
        self.held_back_phases.pod_changed(uid)
        if self.pod_registry.get(uid) is None and self.pod_manager.pod_by_uid(uid) is None:
            self.held_back_phases.forget(uid)

    def _pod_finished(self, _life: PodLifecycle) -> None:
        self._signals.mirror_changed()
        self._signals.resources_freed()

    def _report_unhealthy(self, result: ProbeResult) -> None:
        pod = self.pod_manager.pod_by_uid(result.uid)
        if pod is not None:
            about = container_reference(pod, result.container)
            message = f"{result.probe.capitalize()} probe failed: {result.output}"
            self._recorder.warn(about, reasons.UNHEALTHY, message)


def _dynamic_resources(runtime: Runtime) -> DynamicResources:
    return runtime if isinstance(runtime, DynamicResources) else NoDynamicResources()


def _already_reported(_: ProbeResult) -> None:
    """ProbeWorkers have recorded the event already."""


def _prober_start(dependencies: AgentDependencies) -> Time:
    """The start time for the kubelet's readiness rule; unset: keep the last readiness."""
    if dependencies.settings.ready_after_restart != "kubelet":
        return UNSET_TIME
    return Time.from_unix_nanos(dependencies.clock.now())


def _admit(
    dependencies: AgentDependencies,
    rejection_for: Callable[[Pod], AdmissionRejected | None],
    pod: Pod,
    others: RequestedResources,
) -> AdmissionResult:
    """Admit or reject a pod against the current Node; one that drains or is short rejects."""
    if (rejected := rejection_for(pod)) is not None:
        return rejected
    node = dependencies.node_cache.current()
    max_pods = pod_capacity(node, dependencies.settings.max_pods)
    return admit(pod, node=node, others=others, max_pods=max_pods)


def _decide_resize(
    dependencies: AgentDependencies, pod: Pod, allocated: Pod, others: RequestedResources
) -> ResizeDecision:
    node = dependencies.node_cache.current()
    return decide_resize(
        pod,
        allocated,
        node=node,
        others=others,
        max_pods=pod_capacity(node, dependencies.settings.max_pods),
        supports_resize=isinstance(dependencies.counted_runtime, ResizesPods),
    )
