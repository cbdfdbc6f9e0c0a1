"""The services that look after pods, wired as the agent wires them, in virtual time."""

import asyncio
from typing import Any

from podstatus.checkpoint.memory import MemoryState
from podstatus.kube.codec import from_document
from podstatus.kube.node import Node
from podstatus.kube.pod import PodUID
from podstatus.pods.directory import PodDirectory
from podstatus.runtime.port import SelfProbing
from podstatus.runtime.relist import RuntimeView
from podstatus.sources.mux import Mux
from podstatus.status.counters import Counters
from podstatus.status.manager import StatusManager
from podstatus.status.startup_latency import StartupLatencyTracker
from podstatus.testing.clock import FakeClock
from podstatus.workers.admission import admit
from podstatus.workers.containers import Containers
from podstatus.workers.crash_loops import CrashLoops
from podstatus.workers.dispatch import Dispatcher
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lives import Lives
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_book import ProbeBook
from podstatus.workers.steps import PodSteps
from tests.workers.world_in_memory import ListeningRecorder, TroubledApi, TroubledRuntime

NODE = from_document(
    {
        "metadata": {"name": "node"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    },
    Node,
)


class AgentInMemory:
    """What ends with the agent: its services, and all they remember."""

    def __init__(
        self,
        clock: FakeClock,
        api: TroubledApi,
        runtime: TroubledRuntime,
        recorder: ListeningRecorder,
        state: MemoryState,
        *,
        policy: WorkerPolicy,
        relist: float,
        chance: float,
    ) -> None:
        self._runtime = runtime
        self.directory = PodDirectory()
        self.lives = Lives(self.directory, all_known=self.all_delivered)
        self.view = RuntimeView(
            runtime, clock=clock, on_change=self.wake, period=relist, chance=lambda: 0.5
        )
        latency = StartupLatencyTracker(Counters(), clock=clock)
        self.statuses = StatusManager(
            api, self.directory, self.lives, startup_latency=latency, state=state, clock=clock
        )
        self.book = ProbeBook(self.statuses, self.wake)
        self.steps = PodSteps(
            runtime,
            self.view,
            self.statuses,
            recorder,
            containers=Containers(runtime, recorder, crash_loops=CrashLoops(), clock=clock),
            book=self.book,
            clock=clock,
            policy=policy,
            host_ips=lambda: ["192.168.7.1"],
        )
        self.workers = PodWorkers(
            self.lives,
            self.steps,
            self.view,
            recorder,
            clock=clock,
            policy=policy,
            random=lambda: chance,
        )
        self.dispatcher = Dispatcher(
            self.directory,
            self.lives,
            self.workers,
            self.statuses,
            recorder,
            admit=lambda pod, others: admit(pod, node=NODE, others=others, max_pods=110),
            startup_latency=latency,
            on_mirror=lambda: None,
            clock=clock,
        )
        self.mux = Mux({"api", "file"}, self._handle)
        self.housekeeping = Housekeeping(
            self.directory,
            self.lives,
            self.workers,
            self.steps,
            self.statuses,
            self.view,
            all_delivered=self.all_delivered,
            clock=clock,
            period=policy.housekeeping,
        )
        self.broken: list[Exception] = []
        """What came out of the dispatcher: nothing should."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for service in (self.statuses, self.view, self.workers, self.housekeeping):
                tasks.create_task(service.run())
            tasks.create_task(self._follow_probes(self._runtime))

    def wake(self, uid: PodUID) -> None:
        """Have a pod looked at."""
        self.workers.wake(uid)

    def all_delivered(self) -> bool:
        """Whether every source has delivered."""
        return self.mux.all_delivered

    def _handle(self, change: Any) -> None:
        try:
            self.dispatcher.handle(change)
        except Exception as error:
            self.broken.append(error)
            raise

    async def _follow_probes(self, runtime: SelfProbing) -> None:
        async for result in runtime.probe_results():
            self.book.take(result)
