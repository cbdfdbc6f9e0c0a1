"""A sandbox is listed once it was ready: a pod that waits for a volume has none."""

from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import SandboxState
from podstatus.kube.objects.volumes import ConfigMapVolumeSource, Volume
from podstatus.runtime.port import CannotStartError, Runtime
from podstatus.status.decide.generate_conditions import has_usable_sandbox
from podstatus.testing.builders import make_pod
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime

pytestmark = need_bubblewrap


def a_pod(*volumes: Volume) -> Pod:
    container = Container(name="app", image="busybox", command=("sleep", "600"))
    return structs.replace(
        make_pod("web", uid="uid-1"), spec=PodSpec(containers=(container,), volumes=volumes)
    )


WAITING = a_pod(Volume(name="v", config_map=ConfigMapVolumeSource(name="missing")))


async def sandboxes(runtime: Runtime) -> list[tuple[SandboxState, int]]:
    pods = await runtime.list_pods()
    return [(sandbox.state, sandbox.attempt) for pod in pods for sandbox in pod.facts.sandboxes]


async def test_a_pod_that_waits_for_a_volume_has_none(folder: Path) -> None:
    for _ in range(2):
        async with open_process_runtime(folder, isolated=True) as runtime:
            for _ in range(2):
                with pytest.raises(CannotStartError):
                    await runtime.start_pod(WAITING)
                assert await sandboxes(runtime) == []
    async with open_process_runtime(folder, isolated=True) as runtime:
        assert await sandboxes(runtime) == []
        await runtime.start_pod(a_pod())
        assert await sandboxes(runtime) == [(SandboxState.READY, 0)]
        await runtime.remove_pod(WAITING.uid)
        assert await runtime.list_pods() == []


@pytest.mark.parametrize("host_network", [False, True])
async def test_a_sandbox_has_the_network_that_the_pod_asked_for(
    folder: Path, host_network: bool
) -> None:
    pod = a_pod()
    pod = structs.replace(pod, spec=structs.replace(pod.spec, host_network=host_network))
    async with open_process_runtime(folder, isolated=True) as runtime:
        await runtime.start_pod(pod)
    async with open_process_runtime(folder, isolated=True) as runtime:
        (listed,) = await runtime.list_pods()
        # Otherwise the pod would be killed and started again, at every sync.
        assert has_usable_sandbox(pod, listed.facts)
        await runtime.remove_pod(pod.uid)


async def test_one_that_was_given_up_is_still_listed(folder: Path) -> None:
    async with open_process_runtime(folder, isolated=True) as runtime:
        await runtime.start_pod(a_pod())
        await runtime.stop_pod(WAITING.uid)
        assert await sandboxes(runtime) == [(SandboxState.NOT_READY, 0)]
    async with open_process_runtime(folder, isolated=True) as runtime:
        assert await sandboxes(runtime) == [(SandboxState.NOT_READY, 0)]
        for _ in range(2):
            with pytest.raises(CannotStartError):
                await runtime.start_pod(WAITING)
            assert await sandboxes(runtime) == [(SandboxState.NOT_READY, 0)]
        await runtime.remove_pod(WAITING.uid)
