"""The services that sync pods, in virtual time; nothing runs unless the test calls it."""

from collections.abc import Iterable
from typing import Any

from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import Pod
from podstatus.pods.pod_manager import PodManager
from podstatus.probes.decide.http_target import HttpTarget
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.status.manager import StatusManager
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeEventSink
from podstatus.workers.action_executor import ActionExecutor
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.dependencies import WorkerDependencies, WorkerMetrics, WorkerPolicy
from podstatus.workers.lifecycle.pod_registry import NoDynamicResources, PodRegistry
from podstatus.workers.lifecycle_hooks import HookHttpGet, HookRunner
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.probe_result_store import ProbeResultStore


def ignore(*_: Any) -> None:
    """A callback that does nothing."""


async def no_http_client(target: HttpTarget) -> bool:
    """Fail every httpGet hook."""
    raise ConnectionError(f"cannot request {target.url}")


class PodServices:
    """All that syncs pods, over the simulated runtime or another one."""

    def __init__(
        self,
        pods: Iterable[Pod] = (),
        *,
        clock: Any = None,
        runtime: Runtime | None = None,
        state: MemoryState | None = None,
        recorder: EventRecorder | None = None,
        http_get: HookHttpGet = no_http_client,
    ) -> None:
        self.clock = clock = clock or FakeClock()
        self.sink = FakeEventSink()
        runtime = runtime or SimulatedRuntime(clock)
        recorder = recorder or EventRecorder(self.sink, host="node", clock=clock)
        manager, state = PodManager(pods), state or MemoryState()
        registry = PodRegistry(
            manager, all_sources_ready=lambda: True, dynamic_resources=NoDynamicResources()
        )
        statuses = StatusManager(None, manager, registry, state=state, clock=clock)
        pleg = Pleg(
            runtime, clock=clock, on_change=ignore, heartbeat=ignore, metrics=RuntimeMetrics()
        )
        self.shared = WorkerDependencies(
            runtime=runtime,
            pleg=pleg,
            pod_manager=manager,
            registry=registry,
            statuses=statuses,
            recorder=recorder,
            clock=clock,
            policy=WorkerPolicy(),
            metrics=WorkerMetrics(),
        )
        self.allocations = AllocationManager(state)
        actuator = ResizeActuator(self.shared, self.allocations, on_completed=ignore)
        self.executor = ActionExecutor(
            self.shared,
            crash_loop_backoff=CrashLoopBackoff(),
            hooks=HookRunner(self.shared, http_get=http_get, host_ips=tuple),
            on_init_started=ignore,
            actuator=actuator,
        )
        self.probe_results = ProbeResultStore(statuses, ignore, ignore)
        self.syncer = PodSyncer(
            self.shared,
            executor=self.executor,
            actuator=actuator,
            probe_results=self.probe_results,
            probe_workers=None,
            host_ips=list,
            on_init_finished=ignore,
        )
        self.workers = PodWorkers(self.shared, self.syncer, on_finished=ignore)
