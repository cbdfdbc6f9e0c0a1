"""The services that look after pods, wired as the agent wires them, in virtual time."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from podstatus.agent.compose.status_events import StatusEvents
from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.eviction.decide.model import EvictionConfig
from podstatus.eviction.manager import EvictionManager, NodeUsagePort
from podstatus.eviction.records import EvictionRecords
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.probes.metrics import ProbeMetrics
from podstatus.probes.workers import CheckFunction, ProbeWorkers
from podstatus.runtime.instrumented import instrument
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import ReportsProbes, ResizesPods
from podstatus.sources.mux import Mux
from podstatus.status.counters import Counters
from podstatus.status.manager import StatusManager
from podstatus.status.ports import Outbox
from podstatus.status.startup_latency_tracker import StartupLatencyTracker
from podstatus.testing.clock import FakeClock
from podstatus.workers.action_executor import ActionExecutor
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult, admit
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import PodAdmission, RequestTotals
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.allocation.resize_controller import DecideResize, ResizeController
from podstatus.workers.dependencies import WorkerDependencies, WorkerMetrics, WorkerPolicy
from podstatus.workers.dispatcher import PodDispatcher
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lifecycle.pod_registry import NoDynamicResources, PodRegistry
from podstatus.workers.lifecycle_hooks import HookRunner
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.probe_result_store import ProbeResultStore
from podstatus.workers.resize.decision import ResizeDecision, decide_resize
from podstatus.workers.shutdown.manager import ShutdownManager
from podstatus.workers.shutdown.plan import default_periods
from tests.support.pod_services import ignore, no_http_client
from tests.support.world_in_memory import ListeningRecorder, TroubledApi, TroubledRuntime

NODE = from_document(
    {
        "metadata": {"name": "node"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    },
    Node,
)


class AgentWorld(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the agent."""

    clock: FakeClock
    api: TroubledApi
    runtime: TroubledRuntime
    recorder: ListeningRecorder
    state: MemoryState
    outbox: Outbox | None
    eviction: "EvictionSetup | None" = None
    """None: the agent evicts no pods."""


class EvictionSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What an eviction manager needs of the world."""

    config: EvictionConfig
    records: Path
    node: NodeUsagePort


class AgentInMemory:
    """What ends with the agent: its services, and all they remember."""

    def __init__(
        self,
        world: AgentWorld,
        *,
        policy: WorkerPolicy,
        relist: float,
        chance: float,
        check: CheckFunction | None = None,
    ) -> None:
        """`check`: the agent probes by it; otherwise the runtime says what probes find."""
        clock, runtime, recorder = world.clock, world.runtime, world.recorder
        self._runtime = runtime
        self.runtime_metrics, self.worker_metrics = RuntimeMetrics(), WorkerMetrics()
        self.probe_metrics = ProbeMetrics()
        counted = instrument(runtime, self.runtime_metrics, clock)
        self.directory = PodManager()
        self.lives = PodRegistry(
            self.directory,
            all_sources_ready=self.all_delivered,
            dynamic_resources=NoDynamicResources(),
        )
        self.view = Pleg(
            counted,
            clock=clock,
            on_change=self.wake,
            heartbeat=ignore,
            metrics=self.runtime_metrics,
            period=relist,
            random=lambda: 0.5,
        )
        latency = StartupLatencyTracker(Counters(), clock=clock)
        self.statuses = StatusManager(
            world.api,
            self.directory,
            self.lives,
            startup_latency=latency,
            events=StatusEvents(recorder, "node", on_foreign_write=ignore),
            outbox=world.outbox,
            state=world.state,
            clock=clock,
            recompute_status=self._redecide,
        )
        self.grants = AllocationManager(world.state)
        self.book = ProbeResultStore(self.statuses, self.wake, ignore)
        self._probes = check and ProbeWorkers(
            check,
            recorder,
            on_result=self.book.record,
            clock=clock,
            random=lambda: chance,
            metrics=self.probe_metrics,
        )
        self.shared = shared = WorkerDependencies(
            runtime=counted,
            pleg=self.view,
            pod_manager=self.directory,
            registry=self.lives,
            statuses=self.statuses,
            recorder=recorder,
            clock=clock,
            policy=policy,
            metrics=self.worker_metrics,
        )
        actuation = ResizeActuator(shared, self.grants, on_completed=self._there_is_room)
        self.executor = ActionExecutor(
            shared,
            crash_loop_backoff=CrashLoopBackoff(),
            hooks=HookRunner(shared, http_get=no_http_client, host_ips=tuple),
            on_init_started=latency.record_init_container_started,
            actuator=actuation,
        )
        self.steps = PodSyncer(
            shared,
            executor=self.executor,
            actuator=actuation,
            probe_results=self.book,
            probe_workers=self._probes,
            host_ips=lambda: ["192.168.7.1"],
            on_init_finished=latency.record_init_container_finished,
        )
        setup = world.eviction
        evictions = None if setup is None else EvictionRecords(setup.records)
        self.workers = PodWorkers(
            shared,
            self.steps,
            on_finished=lambda _: self._there_is_room(),
            find_eviction=(lambda _: None) if evictions is None else evictions.find,
            random=lambda: chance,
        )
        self.eviction = (
            None
            if setup is None or evictions is None
            else EvictionManager(
                shared,
                self.workers,
                setup.config,
                records=evictions,
                node=setup.node,
                allocated=self.grants.allocated,
                all_sources_ready=self.all_delivered,
                heartbeat=ignore,
            )
        )
        self.decide_resize: DecideResize = self._decide
        """Tests may replace it."""
        occupancy = RequestTotals(self.lives, self.grants)
        self.resizes = ResizeController(
            shared,
            self.grants,
            occupancy,
            decide=lambda *given: self.decide_resize(*given),  # noqa: PLW0108 - replaced later
            wake=self.wake,
            all_sources_ready=self.all_delivered,
            heartbeat=ignore,
        )
        self.dispatcher = PodDispatcher(
            shared,
            self.workers,
            PodAdmission(self.grants, occupancy, self._admit),
            self.resizes,
            startup_latency=latency,
            on_mirror=ignore,
            on_pod_change=ignore,
        )
        self.mux = Mux({"api", "file"}, self._handle, on_rejected=ignore)
        self.housekeeping = Housekeeping(
            shared,
            self.workers,
            self.steps,
            all_sources_ready=self.all_delivered,
            heartbeat=ignore,
        )
        self.node_events: list[str] = []
        self.shutdown = ShutdownManager(
            shared,
            self.workers,
            default_periods(30, 10),
            record_event=self.normal,
            on_change=ignore,
        )
        self.broken: list[Exception] = []
        """What came out of the dispatcher: nothing should."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for service in (
                self.statuses,
                self.view,
                self.workers,
                self.housekeeping,
                self.shutdown,
                self.resizes,
            ):
                tasks.create_task(service.run())
            if self.eviction is not None:
                tasks.create_task(self.eviction.run())
            if self._probes is None:
                tasks.create_task(self._follow_probes(self._runtime))
            else:
                tasks.create_task(self._probes.run())

    def wake(self, uid: PodUID) -> None:
        """Have a pod looked at."""
        self.workers.wake(uid)

    def _redecide(self, uid: PodUID) -> bool:
        return self.dispatcher.resync(uid)

    def normal(self, reason: str, message: str) -> None:
        """Events of the node."""
        self.node_events.append(f"{reason}: {message}")

    def _admit(self, pod: Pod, others: RequestedResources) -> AdmissionResult:
        rejected = self.shutdown.rejection_for(pod) or self._pressure_rejection(pod)
        return rejected or admit(pod, node=NODE, others=others, max_pods=110)

    def _pressure_rejection(self, pod: Pod) -> AdmissionRejected | None:
        rejection = None if self.eviction is None else self.eviction.rejection_for(pod)
        if rejection is None:
            return None
        return AdmissionRejected(reason=rejection.reason, message=rejection.message)

    def all_delivered(self) -> bool:
        """Whether every source has delivered."""
        return self.mux.all_sources_ready

    def _there_is_room(self) -> None:
        self.resizes.retry()

    def _decide(self, pod: Pod, granted: Pod, others: RequestedResources) -> ResizeDecision:
        can = isinstance(self._runtime, ResizesPods)
        return decide_resize(
            pod, granted, node=NODE, others=others, max_pods=110, supports_resize=can
        )

    def _handle(self, change: Any) -> None:
        try:
            self.dispatcher.handle(change)
        except Exception as error:
            self.broken.append(error)
            raise

    async def _follow_probes(self, runtime: ReportsProbes) -> None:
        async for result in runtime.probe_results():
            self.book.record(result)
