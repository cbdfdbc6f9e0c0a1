"""Back-off for a runtime that reports a start, but lists the container as not running."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.support.pod_services import PodServices


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
async def test_it_is_not_asked_again_at_once(state: ContainerRunState, *, failed: bool) -> None:
    clock, pod = FakeClock(), make_pod("p", uid="uid-p", containers=("a",))
    runtime = HastyRuntime(clock)
    runtime.state = state
    services = PodServices([pod], clock=clock, runtime=runtime)
    synced = await services.syncer.sync_pod(pod)
    assert synced.failed is failed
    assert synced.requeue_after == (None if failed else 0.0)
