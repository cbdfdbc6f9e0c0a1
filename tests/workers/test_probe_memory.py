"""Stored probe results do not grow with container restarts."""

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.model.script import POD_ANNOTATION
from podstatus.testing.builders import make_pod
from tests.support.pod_services import PodServices

UID = PodUID("uid-p")


async def test_verdicts_of_ended_containers_are_forgotten_and_those_of_others_kept() -> None:
    pod = make_pod("p", uid=UID, containers=("a",), annotations={POD_ANNOTATION: "run=1s"})

    services = PodServices([pod])
    clock, view = services.clock, services.shared.pleg
    book, steps = services.probe_results, services.syncer
    for _ in range(5):
        await steps.sync_pod(pod)
        facts = await view.refresh(UID)
        newest = facts.containers[0].id
        book.record(
            ProbeResult(uid=UID, container="a", container_id=newest, probe="liveness", success=True)
        )
        await steps.sync_pod(pod)
        assert dict(book.verdicts(UID).liveness) == {newest: True}
        await clock.advance(400)
