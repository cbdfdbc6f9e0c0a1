"""The client on a real containerd: what it says of itself, a container's life, and restarts."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podstatus.runtime.cri.api.containers import (
    CONTAINER_EXITED,
    CONTAINER_RUNNING,
    CriContainerConfig,
    CriContainerMetadata,
    CriCreateContainerRequest,
    CriExecRequest,
)
from podstatus.runtime.cri.api.images import CriImageSpec
from podstatus.runtime.cri.api.sandboxes import (
    SANDBOX_READY,
    CriLinuxPodSandboxConfig,
    CriPodSandboxConfig,
    CriPodSandboxMetadata,
)
from podstatus.runtime.cri.api.security import (
    NAMESPACE_NODE,
    CriLinuxSandboxSecurityContext,
    CriNamespaceOption,
)
from podstatus.runtime.cri.client.channel import CriChannel
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.image_service import ImageService
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.port import RuntimeDownError
from tests.support.processes.containerd import AS_USER, BUSYBOX, Containerd

pytestmark = pytest.mark.containerd


@pytest.fixture
async def channel(containerd: Containerd) -> AsyncIterator[CriChannel]:
    channel = CriChannel(containerd.endpoint)
    yield channel
    await channel.close()


@pytest.fixture
def runtime(channel: CriChannel) -> RuntimeService:
    return RuntimeService(channel, request_seconds=20.0)


def sandbox(folder: Path) -> CriPodSandboxConfig:
    host = CriNamespaceOption(network=NAMESPACE_NODE)
    return CriPodSandboxConfig(
        metadata=CriPodSandboxMetadata(name="pod", uid="uid", namespace="default"),
        log_directory=str(folder),
        labels={"app": "test"},
        linux=CriLinuxPodSandboxConfig(
            security_context=CriLinuxSandboxSecurityContext(namespace_options=host)
        ),
    )


async def test_it_says_what_it_is(runtime: RuntimeService) -> None:
    version = await runtime.version()
    assert (version.runtime_name, version.runtime_api_version) == ("containerd", "v1")
    conditions = {condition.type: condition for condition in await runtime.conditions()}
    assert conditions["RuntimeReady"].status is True
    assert conditions["NetworkReady"].reason in ("", "NetworkPluginNotReady")


async def test_the_life_of_a_container(runtime: RuntimeService, tmp_path: Path) -> None:
    config = sandbox(tmp_path)
    sandbox_id = await runtime.run_pod_sandbox(config)
    assert (await runtime.pod_sandbox_status(sandbox_id)).state == SANDBOX_READY
    container_id = await runtime.create_container(
        CriCreateContainerRequest(
            pod_sandbox_id=sandbox_id,
            sandbox_config=config,
            config=CriContainerConfig(
                metadata=CriContainerMetadata(name="app", attempt=2),
                image=CriImageSpec(image=BUSYBOX),
                args=("trap 'exit 3' TERM; echo naïve; sleep 600 & wait",),
                labels={"container": "app"},
                log_path="app.log",
            ),
        )
    )
    await runtime.start_container(container_id)
    (listed,) = await runtime.list_containers({"container": "app"})
    assert (listed.id, listed.pod_sandbox_id, listed.state) == (
        container_id,
        sandbox_id,
        CONTAINER_RUNNING,
    )
    assert await runtime.list_containers({"container": "other"}) == ()
    assert (await runtime.exec_url(CriExecRequest(container_id=container_id, stdout=True))) != ""
    while "naïve" not in (tmp_path / "app.log").read_text():  # noqa: ASYNC110 - it is a file
        await asyncio.sleep(0.01)
    await runtime.stop_container(container_id, 20)
    status = await runtime.container_status(container_id)
    assert (status.state, status.exit_code, status.reason) == (CONTAINER_EXITED, 3, "Error")
    assert 0 < status.created_at <= status.started_at
    await runtime.stop_pod_sandbox(sandbox_id)
    await runtime.remove_pod_sandbox(sandbox_id)
    with pytest.raises(CriCallError) as caught:
        await runtime.container_status(container_id)
    assert caught.value.is_not_found


async def test_an_image_has_its_user(channel: CriChannel) -> None:
    images = ImageService(channel, request_seconds=20.0)
    image = await images.image_status(AS_USER)
    assert image is not None
    assert (image.uid, image.username) == (None, "user")
    assert await images.image_status("localhost/no-such-image:1") is None


async def test_it_is_found_again_after_a_restart(
    containerd: Containerd, runtime: RuntimeService, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_pod_sandbox(sandbox(tmp_path))
    containerd.end(signal.SIGKILL)
    with pytest.raises(RuntimeDownError):
        await runtime.version()
    await asyncio.to_thread(containerd.start)
    while True:
        try:
            (listed,) = await runtime.list_pod_sandboxes()
        except (RuntimeDownError, CriCallError):
            continue  # it serves before it has recovered
        break
    assert (listed.id, listed.state, listed.labels) == (sandbox_id, SANDBOX_READY, {"app": "test"})


async def test_it_is_down_while_it_hangs(containerd: Containerd, channel: CriChannel) -> None:
    runtime = RuntimeService(channel, request_seconds=0.5)
    await runtime.version()
    containerd.pause()
    try:
        with pytest.raises(RuntimeDownError, match="within 500ms"):
            await runtime.list_pod_sandboxes()
    finally:
        containerd.resume()
    assert (await runtime.version()).runtime_name == "containerd"
