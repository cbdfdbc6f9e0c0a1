"""A lost sandbox is re-created, with an event."""

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.testing.builders import make_pod
from podstatus.workers.action_executor import ActionsOutcome
from podstatus.workers.actions.compute import compute_pod_actions
from tests.support.pod_services import PodServices


async def test_a_replaced_sandbox_has_an_event() -> None:
    pod = make_pod("p", uid="uid-p", containers=("a",))

    services = PodServices()
    clock, sink, containers = services.clock, services.sink, services.executor
    runtime, recorder = services.shared.runtime, services.shared.recorder

    async def look_after(pod: Pod) -> list[str]:
        listed = await runtime.list_pods(pod.uid)
        facts = listed[0].facts if listed else PodFacts()
        loops = containers.crash_loop_backoff
        actions = compute_pod_actions(
            pod, facts, monotonic=clock.monotonic(), crash_loop_backoff=loops
        )
        assert await containers.apply(pod, facts, actions) is ActionsOutcome.DONE
        before = len(sink.events)
        while await recorder.send_once():
            pass
        return [f"{reason}: {message}" for reason, message, _ in sink.summaries[before:]]

    event = "SandboxChanged: Pod sandbox changed, it will be killed and re-created."
    assert event not in await look_after(pod)
    await runtime.stop_pod(pod.uid)
    assert event in await look_after(pod)
    assert event not in await look_after(pod)
