"""Back-off for a runtime that reports a start, but lists the container as not running."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec import structs

from podstatus.checkpoint.resource_state import MemoryState
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.simulated.adapter import SimulatedRuntime
from podstatus.status.manager import StatusManager
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety, FakeEventSink
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.pod_executor import PodExecutor
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_result_store import ProbeResultStore


class HastyRuntime(SimulatedRuntime):
    """A runtime whose containers never leave this state."""

    state = ContainerRunState.CREATED

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return [self._shown(pod) for pod in await super().list_pods(uid)]

    def _shown(self, pod: RuntimePod) -> RuntimePod:
        containers = tuple(structs.replace(c, state=self.state) for c in pod.facts.containers)
        return structs.replace(pod, facts=structs.replace(pod.facts, containers=containers))


@pytest.mark.parametrize(
    ("state", "failed"),
    [
        (ContainerRunState.CREATED, True),
        (ContainerRunState.UNKNOWN, True),
        (ContainerRunState.RUNNING, False),
    ],
)
def test_it_is_not_asked_again_at_once(state: ContainerRunState, *, failed: bool) -> None:
    async def scene() -> None:
        clock, pod = FakeClock(), make_pod("p", uid="uid-p", containers=("a",))
        runtime = HastyRuntime(clock)
        runtime.state = state
        recorder = EventRecorder(FakeEventSink(), host="node", clock=clock)
        statuses = StatusManager(
            None, PodManager([pod]), FakeDeletionSafety(), state=MemoryState(), clock=clock
        )
        steps = PodSyncer(
            runtime,
            Pleg(runtime, clock=clock, on_change=lambda _: None),
            statuses,
            recorder,
            executor=PodExecutor(
                runtime, recorder, crash_loop_backoff=CrashLoopBackoff(), clock=clock
            ),
            probe_results=ProbeResultStore(statuses, lambda _: None),
            clock=clock,
            policy=WorkerPolicy(),
            host_ips=list,
        )
        synced = await steps.sync_pod(pod)
        assert synced.failed is failed
        assert synced.requeue_after == (None if failed else 0.0)

    asyncio.run(scene())
