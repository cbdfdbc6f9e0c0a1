"""Build the pod services: pod manager, mux, workers, probes, resize, status manager."""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from podstatus.agent.compose.history import AgentHistory, RecordingCounters, RecordingEvents
from podstatus.agent.compose.status_events import StatusEvents
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.checkpoint.outbox_files import FileOutbox
from podstatus.client.typed.pods import HttpPodApi
from podstatus.events import reasons
from podstatus.events.object_references import container_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.observe.metrics.work_counters import WorkCounts
from podstatus.pods.pod_manager import PodManager
from podstatus.probes.check_dispatch import ProbeChecker
from podstatus.probes.http_hook import send_hook_request
from podstatus.probes.workers import ProbeWorkers
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import ProbeResult, ReportsProbes, ResizesPods, Runtime
from podstatus.sources.mux import Mux
from podstatus.status.manager import StatusManager
from podstatus.status.ports import OutboxEntry
from podstatus.status.startup_latency_tracker import StartupLatencyTracker
from podstatus.workers.action_executor import ActionExecutor
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult, admit
from podstatus.workers.admission.resource_fit import RequestedResources, pod_capacity
from podstatus.workers.allocation.allocate_on_admission import PodAdmission
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import RequestTotals
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.allocation.resize_controller import ResizeController
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.dispatcher import PodDispatcher
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.lifecycle.state_machine import PodLifecycle
from podstatus.workers.lifecycle_hooks import HookRunner
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.ports import NoopProbeManager
from podstatus.workers.probe_result_store import ProbeResultStore
from podstatus.workers.resize.decision import ResizeDecision, decide_resize


class PodDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What the pod services need from the rest of the agent."""

    settings: AgentSettings
    clock: Clock
    heartbeats: Heartbeats
    recorder: EventRecorder
    current_node: Callable[[], Node]
    host_ips: Callable[[], Sequence[str]]
    source_names: frozenset[str]
    """The sources that must deliver before pods are cleaned up."""
    on_mirror: Callable[[], None]
    """Called when a mirror pod or its static pod changes."""
    rejection: Callable[[Pod], AdmissionRejected | None]
    """Returns why the draining node rejects a pod, None if it does not."""
    history: AgentHistory
    on_pod_changed: Callable[[PodUID], None]
    """Called when a pod is added to, updated in or removed from the pod manager."""
    work_counts: WorkCounts


class PodServices:
    """The pod services of a node, connected with each other."""

    def __init__(
        self,
        dependencies: PodDependencies,
        runtime: Runtime,
        pleg: Pleg,
        pod_api: HttpPodApi,
        state: FileState,
        outbox: FileOutbox[OutboxEntry],
    ) -> None:
        settings, clock, recorder = dependencies.settings, dependencies.clock, dependencies.recorder
        self._recorder = recorder
        self._on_mirror = dependencies.on_mirror
        self.counters = RecordingCounters(dependencies.history)
        self.pod_manager = PodManager()
        dependencies.history.translate_uid = self.pod_manager.translate_pod_uid
        self.pod_registry = PodRegistry(self.pod_manager, all_sources_ready=self._all_delivered)
        self.startup_latency = StartupLatencyTracker(self.counters, clock=clock)
        self.status_manager = StatusManager(
            pod_api,
            self.pod_manager,
            self.pod_registry,
            startup_latency=self.startup_latency,
            observer=self.counters,
            events=RecordingEvents(
                StatusEvents(recorder, settings.node_name), dependencies.history
            ),
            outbox=outbox,
            state=state,
            clock=clock,
            gates=settings.feature_gates,
            recompute_status=self._recompute_status,
            heartbeat=dependencies.heartbeats.register("status", max_silent_seconds=60),
        )
        policy = WorkerPolicy(
            sync_frequency=settings.sync_frequency,
            keep_terminated_pod_volumes=settings.keep_terminated_pod_volumes,
            gates=settings.feature_gates,
        )
        probes_itself = isinstance(runtime, ReportsProbes)
        # ProbeWorkers record an event for each failed check themselves, as upstream does.
        unhealthy = self._report_unhealthy if probes_itself else _already_reported
        self.probe_results = ProbeResultStore(
            self.status_manager, self.wake, unhealthy, _prober_start(dependencies)
        )
        self.probes = ProbeWorkers(
            ProbeChecker(runtime, clock=clock),
            recorder,
            on_result=self.probe_results.record,
            clock=clock,
            observer=dependencies.work_counts,
        )
        self.allocations = AllocationManager(state)
        actuation = ResizeActuator(
            runtime,
            self.allocations,
            self.status_manager,
            recorder,
            on_completed=self._resources_freed,
        )
        shared = WorkerDependencies(
            runtime=runtime,
            pleg=pleg,
            pod_manager=self.pod_manager,
            registry=self.pod_registry,
            statuses=self.status_manager,
            recorder=recorder,
            clock=clock,
            policy=policy,
            observer=dependencies.work_counts,
        )
        containers = ActionExecutor(
            runtime,
            recorder,
            crash_loop_backoff=CrashLoopBackoff(max_seconds=settings.max_container_restart_period),
            clock=clock,
            hooks=HookRunner(
                runtime,
                recorder,
                clock=clock,
                http_get=send_hook_request,
                host_ips=dependencies.host_ips,
            ),
            on_init_started=self.startup_latency.record_init_container_started,
            actuator=actuation,
            observer=dependencies.work_counts,
        )
        self.pod_syncer = PodSyncer(
            shared,
            executor=containers,
            actuator=actuation,
            probe_results=self.probe_results,
            probe_manager=NoopProbeManager() if probes_itself else self.probes,
            host_ips=dependencies.host_ips,
            on_init_finished=self.startup_latency.record_init_container_finished,
        )
        self.workers = PodWorkers(shared, self.pod_syncer, on_finished=self._pod_finished)
        occupancy = RequestTotals(self.pod_registry, self.allocations)
        self.resize_controller = ResizeController(
            shared,
            self.allocations,
            occupancy,
            decide=partial(_decide_resize, dependencies, runtime),
            wake=self.wake,
            all_sources_ready=self._all_delivered,
            heartbeat=dependencies.heartbeats.register("resizes", max_silent_seconds=400),
        )
        self.dispatcher = PodDispatcher(
            shared,
            self.workers,
            PodAdmission(self.allocations, occupancy, partial(_admit, dependencies)),
            self.resize_controller,
            startup_latency=self.startup_latency,
            on_mirror=dependencies.on_mirror,
            on_pod_change=dependencies.on_pod_changed,
        )
        self.mux = Mux(
            dependencies.source_names,
            self.dispatcher.handle,
            on_rejected=self.dispatcher.report_rejected,
        )
        self.housekeeping = Housekeeping(
            shared,
            self.workers,
            self.pod_syncer,
            all_sources_ready=self._all_delivered,
            heartbeat=dependencies.heartbeats.register("housekeeping", max_silent_seconds=60),
        )

    def wake(self, uid: PodUID) -> None:
        """Sync a pod as soon as possible."""
        self.workers.wake(uid)

    def _recompute_status(self, uid: PodUID) -> bool:
        return self.dispatcher.resync(uid)

    def _pod_finished(self, _life: PodLifecycle) -> None:
        self._on_mirror()
        self._resources_freed()

    def _resources_freed(self) -> None:
        self.resize_controller.retry()

    def _report_unhealthy(self, result: ProbeResult) -> None:
        pod = self.pod_manager.pod_by_uid(result.uid)
        if pod is not None:
            about = container_reference(pod, result.container)
            message = f"{result.probe.capitalize()} probe failed: {result.output}"
            self._recorder.warn(about, reasons.UNHEALTHY, message)

    def _all_delivered(self) -> bool:
        return self.mux.all_sources_ready


def _already_reported(_: ProbeResult) -> None:
    """ProbeWorkers have recorded the event already."""


def _prober_start(dependencies: PodDependencies) -> Time:
    """The start time for the kubelet's readiness rule; unset: keep the last readiness."""
    if dependencies.settings.ready_after_restart != "kubelet":
        return UNSET_TIME
    return Time.from_unix_nanos(dependencies.clock.now())


def _admit(dependencies: PodDependencies, pod: Pod, others: RequestedResources) -> AdmissionResult:
    """Admit or reject a pod against the current Node."""
    if (rejected := dependencies.rejection(pod)) is not None:
        return rejected
    node = dependencies.current_node()
    max_pods = pod_capacity(node, dependencies.settings.max_pods)
    return admit(pod, node=node, others=others, max_pods=max_pods)


def _decide_resize(
    dependencies: PodDependencies,
    runtime: Runtime,
    pod: Pod,
    allocated: Pod,
    others: RequestedResources,
) -> ResizeDecision:
    """Decide a resize against the current Node."""
    node = dependencies.current_node()
    return decide_resize(
        pod,
        allocated,
        node=node,
        others=others,
        max_pods=pod_capacity(node, dependencies.settings.max_pods),
        supports_resize=isinstance(runtime, ResizesPods),
    )
