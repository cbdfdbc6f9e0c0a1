"""What is remembered of probes does not grow with the restarts of a container."""

import asyncio

from podstatus.checkpoint.state import MemoryState
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import RuntimeView
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.adapter import SimulatedRuntime
from podstatus.runtime.simulated.model.script import POD_ANNOTATION
from podstatus.status.manager import StatusManager
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety, FakeEventSink
from podstatus.workers.actions.crash_loop_backoff import CrashLoops
from podstatus.workers.pod_executor import Containers
from podstatus.workers.pod_syncer import PodSteps
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_results import ProbeBook

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
        view = RuntimeView(runtime, clock=clock, on_change=lambda _: None)
        book = ProbeBook(statuses, lambda _: None)
        steps = PodSteps(
            runtime,
            view,
            statuses,
            recorder,
            containers=Containers(runtime, recorder, crash_loops=CrashLoops(), clock=clock),
            book=book,
            clock=clock,
            policy=WorkerPolicy(),
            host_ips=list,
        )
        for _ in range(5):
            await steps.sync(pod)
            facts = await view.refresh(UID)
            newest = facts.containers[0].id
            book.take(
                ProbeResult(
                    uid=UID, container="a", container_id=newest, probe="liveness", success=True
                )
            )
            await steps.sync(pod)
            assert dict(book.verdicts(UID).liveness) == {newest: True}
            await clock.advance(400)

    asyncio.run(scene())
