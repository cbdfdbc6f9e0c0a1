"""Put together what looks after pods: from sources to workers, statuses and mirror pods."""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from podstatus.agent.settings import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.checkpoint.files import FileState
from podstatus.checkpoint.outbox import FileOutbox
from podstatus.client.pod_api import HttpPodApi
from podstatus.events import reasons
from podstatus.events.about import about_container
from podstatus.events.recorder import Recorder
from podstatus.events.status_events import StatusEvents
from podstatus.kube.node import Node
from podstatus.kube.pod import Pod, PodUID
from podstatus.pods.directory import PodDirectory
from podstatus.runtime.port import ProbeResult, Runtime
from podstatus.runtime.relist import RuntimeView
from podstatus.sources.mux import Mux
from podstatus.status.counters import Counters
from podstatus.status.manager import StatusManager
from podstatus.status.ports import Undelivered
from podstatus.status.startup_latency import StartupLatencyTracker
from podstatus.workers.admission import Admission, admit
from podstatus.workers.containers import Containers
from podstatus.workers.crash_loops import CrashLoops
from podstatus.workers.dispatch import Dispatcher
from podstatus.workers.fits import most_pods
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lives import Lives
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_book import ProbeBook
from podstatus.workers.steps import PodSteps


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What the services of pods need from the rest of the agent."""

    settings: AgentSettings
    clock: Clock
    heartbeats: Heartbeats
    recorder: Recorder
    own_node: Callable[[], Node]
    host_ips: Callable[[], Sequence[str]]
    sources: frozenset[str]
    """The names of those that will deliver."""
    on_mirror: Callable[[], None]
    """Told when something happened to a mirror pod or its static pod."""


class PodSide:
    """The services of pods, wired."""

    def __init__(
        self,
        around: Beside,
        runtime: Runtime,
        view: RuntimeView,
        pod_api: HttpPodApi,
        state: FileState,
        outbox: FileOutbox[Undelivered],
    ) -> None:
        settings, clock, recorder = around.settings, around.clock, around.recorder
        self._recorder = recorder
        self.counters = Counters()
        self.directory = PodDirectory()
        self.lives = Lives(self.directory, all_known=self._all_delivered)
        self.startup_latency = StartupLatencyTracker(self.counters, clock=clock)
        self.statuses = StatusManager(
            pod_api,
            self.directory,
            self.lives,
            startup_latency=self.startup_latency,
            observer=self.counters,
            events=StatusEvents(recorder),
            outbox=outbox,
            state=state,
            clock=clock,
            gates=settings.feature_gates,
            heartbeat=around.heartbeats.expect("status", at_most=60),
        )
        policy = WorkerPolicy(
            sync_frequency=settings.sync_frequency,
            keep_terminated_pod_volumes=settings.keep_terminated_pod_volumes,
            gates=settings.feature_gates,
        )
        self.book = ProbeBook(self.statuses, self.wake, self._unhealthy)
        containers = Containers(
            runtime,
            recorder,
            crash_loops=CrashLoops(max_seconds=settings.max_container_restart_period),
            clock=clock,
            on_init_started=self.startup_latency.record_init_container_started,
        )
        self.steps = PodSteps(
            runtime,
            view,
            self.statuses,
            recorder,
            containers=containers,
            book=self.book,
            clock=clock,
            policy=policy,
            host_ips=around.host_ips,
            on_init_finished=self.startup_latency.record_init_container_finished,
        )
        self.workers = PodWorkers(
            self.lives,
            self.steps,
            view,
            recorder,
            clock=clock,
            policy=policy,
            on_finished=lambda _: around.on_mirror(),
        )
        self.dispatcher = Dispatcher(
            self.directory,
            self.lives,
            self.workers,
            self.statuses,
            recorder,
            admit=partial(_admit, around),
            startup_latency=self.startup_latency,
            on_mirror=around.on_mirror,
            clock=clock,
        )
        self.mux = Mux(around.sources, self.dispatcher.handle, on_refused=self.dispatcher.refuse)
        self.housekeeping = Housekeeping(
            self.directory,
            self.lives,
            self.workers,
            self.steps,
            self.statuses,
            view,
            all_delivered=self._all_delivered,
            clock=clock,
            period=policy.housekeeping,
            beat=around.heartbeats.expect("housekeeping", at_most=60),
        )

    def wake(self, uid: PodUID) -> None:
        """Have a pod looked at."""
        self.workers.wake(uid)

    def _unhealthy(self, result: ProbeResult) -> None:
        pod = self.directory.pod_by_uid(result.uid)
        if pod is not None:
            about = about_container(pod, result.container)
            message = f"{result.probe.capitalize()} probe failed: "
            self._recorder.warn(about, reasons.UNHEALTHY, message)

    def _all_delivered(self) -> bool:
        return self.mux.all_delivered


def _admit(around: Beside, pod: Pod, others: Sequence[Pod]) -> Admission:
    """Whether the Node, as it is shown now, has room for a pod."""
    node = around.own_node()
    most = most_pods(node, around.settings.max_pods)
    return admit(pod, node=node, others=others, max_pods=most)
