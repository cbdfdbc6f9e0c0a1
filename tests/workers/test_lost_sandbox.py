"""A lost sandbox is re-created, with an event."""

import asyncio

from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.kube.scalars.time import Time
from podstatus.runtime.simulated.adapter import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeEventSink
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.pod_executor import PodExecutor


def test_a_replaced_sandbox_has_an_event() -> None:
    pod = make_pod("p", uid="uid-p", containers=("a",))

    async def scene() -> None:
        clock, sink = FakeClock(), FakeEventSink()
        runtime = SimulatedRuntime(clock)
        recorder = EventRecorder(sink, host="node", clock=clock)
        containers = PodExecutor(
            runtime, recorder, crash_loop_backoff=CrashLoopBackoff(), clock=clock
        )

        async def look_after(pod: Pod) -> list[str]:
            listed = await runtime.list_pods(pod.uid)
            facts = listed[0].facts if listed else PodFacts()
            now = Time.from_unix_nanos(clock.now())
            loops = containers.crash_loop_backoff
            actions = compute_pod_actions(pod, facts, now=now, crash_loop_backoff=loops)
            assert await containers.apply(pod, facts, actions)
            before = len(sink.events)
            while await recorder.send_once():
                pass
            return [f"{reason}: {message}" for reason, message, _ in sink.summaries[before:]]

        event = "SandboxChanged: Pod sandbox changed, it will be killed and re-created."
        assert event not in await look_after(pod)
        await runtime.stop_pod(pod.uid)
        assert event in await look_after(pod)
        assert event not in await look_after(pod)

    asyncio.run(scene())
