"""Stored probe results do not grow with container restarts."""

import asyncio

from podstatus.checkpoint.resource_state import MemoryState
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.adapter import SimulatedRuntime
from podstatus.runtime.simulated.model.script import POD_ANNOTATION
from podstatus.status.manager import StatusManager
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety, FakeEventSink
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.pod_executor import PodExecutor
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_result_store import ProbeResultStore

UID = PodUID("uid-p")


def test_verdicts_of_ended_containers_are_forgotten_and_those_of_others_kept() -> None:
    pod = make_pod("p", uid=UID, containers=("a",), annotations={POD_ANNOTATION: "run=1s"})

    async def scene() -> None:
        clock = FakeClock()
        runtime = SimulatedRuntime(clock)
        recorder = EventRecorder(FakeEventSink(), host="node", clock=clock)
        directory = PodManager([pod])
        statuses = StatusManager(
            None, directory, FakeDeletionSafety(), state=MemoryState(), clock=clock
        )
        view = Pleg(runtime, clock=clock, on_change=lambda _: None)
        book = ProbeResultStore(statuses, lambda _: None)
        steps = PodSyncer(
            runtime,
            view,
            statuses,
            recorder,
            executor=PodExecutor(
                runtime, recorder, crash_loop_backoff=CrashLoopBackoff(), clock=clock
            ),
            probe_results=book,
            clock=clock,
            policy=WorkerPolicy(),
            host_ips=list,
        )
        for _ in range(5):
            await steps.sync_pod(pod)
            facts = await view.refresh(UID)
            newest = facts.containers[0].id
            book.record(
                ProbeResult(
                    uid=UID, container="a", container_id=newest, probe="liveness", success=True
                )
            )
            await steps.sync_pod(pod)
            assert dict(book.verdicts(UID).liveness) == {newest: True}
            await clock.advance(400)

    asyncio.run(scene())
