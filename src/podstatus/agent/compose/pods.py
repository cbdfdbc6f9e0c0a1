"""Put together what looks after pods: from sources to workers, statuses and mirror pods."""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from podstatus.agent.compose.history import KeptHistory, NotingCounters, NotingEvents
from podstatus.agent.compose.status_events import StatusEvents
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.checkpoint.outbox import FileOutbox
from podstatus.checkpoint.state import FileState
from podstatus.client.typed.pods import HttpPodApi
from podstatus.events import reasons
from podstatus.events.event import container_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.observe.metrics.work_counters import WorkCounts
from podstatus.pods.pod_manager import PodManager
from podstatus.probes.checks import ProbeChecker
from podstatus.probes.http_hook import send_hook_request
from podstatus.probes.workers import ProbeWorkers
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import ProbeResult, ReportsProbes, ResizesPods, Runtime
from podstatus.sources.mux import Mux
from podstatus.status.manager import StatusManager
from podstatus.status.ports import OutboxEntry
from podstatus.status.startup_latency import StartupLatencyTracker
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult, admit
from podstatus.workers.admission.resource_fit import RequestedResources, pod_capacity
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import RequestTotals
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.allocation.resize_controller import ResizeController
from podstatus.workers.dispatcher import PodDispatcher
from podstatus.workers.hooks import HookRunner
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.lifecycle.state_machine import PodLifecycle
from podstatus.workers.pod_executor import PodExecutor
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_results import ProbeResultStore
from podstatus.workers.resize.decision import ResizeDecision, decide_resize


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What the services of pods need from the rest of the agent."""

    settings: AgentSettings
    clock: Clock
    heartbeats: Heartbeats
    recorder: EventRecorder
    own_node: Callable[[], Node]
    host_ips: Callable[[], Sequence[str]]
    sources: frozenset[str]
    """The names of those that will deliver."""
    on_mirror: Callable[[], None]
    """Told when something happened to a mirror pod or its static pod."""
    not_taken: Callable[[Pod], AdmissionRejected | None]
    """Why no pod is taken now, if that is so."""
    history: KeptHistory
    on_directory: Callable[[PodUID], None]
    """Told of pods that are known anew, or not any more."""
    work: WorkCounts


class PodSide:
    """The services of pods, wired."""

    def __init__(
        self,
        around: Beside,
        runtime: Runtime,
        view: Pleg,
        pod_api: HttpPodApi,
        state: FileState,
        outbox: FileOutbox[OutboxEntry],
    ) -> None:
        settings, clock, recorder = around.settings, around.clock, around.recorder
        self._recorder = recorder
        self._on_mirror = around.on_mirror
        self.counters = NotingCounters(around.history)
        self.directory = PodManager()
        around.history.own_uid = self.directory.translate_pod_uid
        self.lives = PodRegistry(self.directory, all_sources_ready=self._all_delivered)
        self.startup_latency = StartupLatencyTracker(self.counters, clock=clock)
        self.statuses = StatusManager(
            pod_api,
            self.directory,
            self.lives,
            startup_latency=self.startup_latency,
            observer=self.counters,
            events=NotingEvents(StatusEvents(recorder, settings.node_name), around.history),
            outbox=outbox,
            state=state,
            clock=clock,
            gates=settings.feature_gates,
            recompute_status=self._redecide,
            heartbeat=around.heartbeats.register("status", max_silent_seconds=60),
        )
        policy = WorkerPolicy(
            sync_frequency=settings.sync_frequency,
            keep_terminated_pod_volumes=settings.keep_terminated_pod_volumes,
            gates=settings.feature_gates,
        )
        probes_itself = isinstance(runtime, ReportsProbes)
        # Of checks that we make, each is told about that fails, not only the last.
        unhealthy = self._unhealthy if probes_itself else _told_already
        self.book = ProbeResultStore(self.statuses, self.wake, unhealthy, _watching_since(around))
        self.probes = ProbeWorkers(
            ProbeChecker(runtime, clock=clock),
            recorder,
            on_result=self.book.record,
            clock=clock,
            observer=around.work,
        )
        self.grants = AllocationManager(state)
        actuation = ResizeActuator(
            runtime, self.grants, self.statuses, recorder, on_completed=self._there_is_room
        )
        containers = PodExecutor(
            runtime,
            recorder,
            crash_loop_backoff=CrashLoopBackoff(max_seconds=settings.max_container_restart_period),
            clock=clock,
            hooks=HookRunner(
                runtime, recorder, clock=clock, http_get=send_hook_request, host_ips=around.host_ips
            ),
            on_init_started=self.startup_latency.record_init_container_started,
            actuator=actuation,
            observer=around.work,
        )
        self.steps = PodSyncer(
            runtime,
            view,
            self.statuses,
            recorder,
            executor=containers,
            probe_results=self.book,
            clock=clock,
            policy=policy,
            host_ips=around.host_ips,
            probe_manager=None if probes_itself else self.probes,
            on_init_finished=self.startup_latency.record_init_container_finished,
            actuator=actuation,
        )
        self.workers = PodWorkers(
            self.lives,
            self.steps,
            view,
            recorder,
            clock=clock,
            policy=policy,
            on_finished=self._finished,
            observer=around.work,
        )
        occupancy = RequestTotals(self.lives, self.grants)
        self.resizes = ResizeController(
            self.lives,
            self.grants,
            self.statuses,
            recorder,
            occupancy,
            decide=partial(_decide_resize, around, runtime),
            wake=self.wake,
            all_sources_ready=self._all_delivered,
            clock=clock,
            heartbeat=around.heartbeats.register("resizes", max_silent_seconds=400),
        )
        self.dispatcher = PodDispatcher(
            self.directory,
            self.lives,
            self.workers,
            self.statuses,
            recorder,
            self.grants,
            occupancy,
            admit=partial(_admit, around),
            startup_latency=self.startup_latency,
            on_mirror=around.on_mirror,
            clock=clock,
            gates=settings.feature_gates,
            resize_controller=self.resizes,
            on_pod_change=around.on_directory,
        )
        self.mux = Mux(
            around.sources, self.dispatcher.handle, on_rejected=self.dispatcher.report_rejected
        )
        self.housekeeping = Housekeeping(
            self.directory,
            self.lives,
            self.workers,
            self.steps,
            self.statuses,
            view,
            all_sources_ready=self._all_delivered,
            clock=clock,
            period=policy.housekeeping,
            heartbeat=around.heartbeats.register("housekeeping", max_silent_seconds=60),
        )

    def wake(self, uid: PodUID) -> None:
        """Have a pod looked at."""
        self.workers.wake(uid)

    def _redecide(self, uid: PodUID) -> bool:
        return self.dispatcher.resync(uid)

    def _finished(self, _life: PodLifecycle) -> None:
        self._on_mirror()
        self._there_is_room()

    def _there_is_room(self) -> None:
        self.resizes.retry()

    def _unhealthy(self, result: ProbeResult) -> None:
        pod = self.directory.pod_by_uid(result.uid)
        if pod is not None:
            about = container_reference(pod, result.container)
            message = f"{result.probe.capitalize()} probe failed: {result.output}"
            self._recorder.warn(about, reasons.UNHEALTHY, message)

    def _all_delivered(self) -> bool:
        return self.mux.all_sources_ready


def _told_already(_: ProbeResult) -> None:
    """Whoever made the check has said that it failed."""


def _watching_since(around: Beside) -> Time:
    """From when on probes are judged as the kubelet does; unset: by what was shown last."""
    if around.settings.ready_after_restart != "kubelet":
        return UNSET_TIME
    return Time.from_unix_nanos(around.clock.now())


def _admit(around: Beside, pod: Pod, others: RequestedResources) -> AdmissionResult:
    """Whether the Node, as it is shown now, has room for a pod."""
    if (rejected := around.not_taken(pod)) is not None:
        return rejected
    node = around.own_node()
    most = pod_capacity(node, around.settings.max_pods)
    return admit(pod, node=node, others=others, max_pods=most)


def _decide_resize(
    around: Beside, runtime: Runtime, pod: Pod, granted: Pod, others: RequestedResources
) -> ResizeDecision:
    """Whether the Node, as it is shown now, has room for other resources of a pod."""
    node = around.own_node()
    return decide_resize(
        pod,
        granted,
        node=node,
        others=others,
        max_pods=pod_capacity(node, around.settings.max_pods),
        supports_resize=isinstance(runtime, ResizesPods),
    )
