"""Pulls follow the policy, back off after failures, and try the credentials of the pod.

Upstream: image_manager_test.go v1.36.4.
"""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from podstatus.kube.objects.cluster import Secret
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.cri.api.images import (
    CriImage,
    CriImageStatusResponse,
    CriPullImageResponse,
)
from podstatus.runtime.cri.client.channel import CriChannel
from podstatus.runtime.cri.client.image_service import ImageService
from podstatus.runtime.cri.image_puller import ImagePuller
from podstatus.runtime.port import CannotStartError
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.support.processes.fake_cri_server import FakeCriServer

POD = make_pod("pod", uid="u")
IMAGE = CriImage(id="sha256:1", size=42)
FAILED = "image pull failed for reg.io/x:1 because"
PRESENT = CriImageStatusResponse(image=IMAGE)
ABSENT = CriImageStatusResponse()


class Registry:
    """A runtime that has an image or not, and pulls it or not."""

    def __init__(self, server: FakeCriServer, puller: ImagePuller, clock: FakeClock) -> None:
        self.server, self.puller, self.clock = server, puller, clock
        self.secrets: tuple[Secret, ...] = ()

    def has(self, *, present: bool) -> None:
        self.server.answers["ImageStatus"] = PRESENT if present else ABSENT

    def fail(self, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        self.server.fail("PullImage", code, message)

    async def start(self, policy: str, pod: Pod = POD) -> str:
        """Ensure the image; return the message of the event, or reason and message of the error."""
        container = Container(name="app", image="reg.io/x:1", image_pull_policy=policy)
        try:
            await self.puller.ensure_image(pod, container, self._secrets)
        except CannotStartError as error:
            return f"{error.reason}: {error.message}"
        return self.puller.image_message(container.image)

    @property
    def pulls(self) -> int:
        return self.server.calls.count("PullImage")

    async def _secrets(self) -> tuple[Secret, ...]:
        return self.secrets


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    server, clock = FakeCriServer(), FakeClock()
    server.answers["PullImage"] = CriPullImageResponse(image_ref="sha256:1")
    channel = CriChannel(f"unix://{tmp_path}/s")
    puller = ImagePuller(ImageService(channel, request_seconds=20.0), clock)
    async with server.serve(tmp_path / "s"):
        yield Registry(server, puller, clock)
        await channel.close()


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never", ""])
async def test_an_image_that_is_present_is_not_pulled(registry: Registry, policy: str) -> None:
    registry.has(present=True)
    assert await registry.start(policy) == (
        'Container image "reg.io/x:1" already present on machine'
    )
    assert registry.pulls == 0


async def test_always_pulls(registry: Registry) -> None:
    registry.has(present=True)
    message = await registry.start("Always")
    assert message.startswith('Successfully pulled image "reg.io/x:1" in ')
    assert message.endswith("Image size: 42 bytes.")
    assert registry.pulls == 1


async def test_never_does_not(registry: Registry) -> None:
    registry.has(present=False)
    assert await registry.start("Never") == (
        'ErrImageNeverPull: Container image "reg.io/x:1" is not present with pull policy of Never'
    )
    assert registry.pulls == 0


async def test_a_failed_pull_is_retried_after_longer_and_longer_delays(registry: Registry) -> None:
    registry.has(present=False)
    registry.fail("no such host")
    back_off = 'ImagePullBackOff: Back-off pulling image "reg.io/x:1": ErrImagePull: no such host'
    for number, seconds in enumerate((10, 20, 40, 80, 160, 300, 300), 1):
        assert await registry.start("IfNotPresent") == "ErrImagePull: no such host"
        await registry.clock.advance(seconds - 0.1)
        assert await registry.start("IfNotPresent") == back_off
        assert registry.pulls == number
        await registry.clock.advance(0.2)


async def test_the_back_off_is_that_of_a_pod_and_ends_with_it(registry: Registry) -> None:
    registry.has(present=False)
    registry.fail("no such host")
    for pod in (POD, make_pod("other", uid="v")):
        assert (await registry.start("IfNotPresent", pod)).startswith("ErrImagePull")
    registry.puller.forget(POD.uid)
    assert (await registry.start("IfNotPresent")).startswith("ErrImagePull")
    assert registry.pulls == 3


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (grpc.StatusCode.UNKNOWN, "failed to pull", "ErrImagePull: failed to pull"),
        (
            grpc.StatusCode.NOT_FOUND,
            "failed to pull",
            "ErrImagePull: rpc error: code = NotFound desc = failed to pull",
        ),
        (
            grpc.StatusCode.UNKNOWN,
            "RegistryUnavailable: 503",
            f"RegistryUnavailable: {FAILED} the registry is unavailable: 503",
        ),
        (
            grpc.StatusCode.UNKNOWN,
            "SignatureValidationFailed",
            f"SignatureValidationFailed: {FAILED} the signature validation failed",
        ),
    ],
)
async def test_why_a_pull_failed(
    registry: Registry, code: grpc.StatusCode, message: str, expected: str
) -> None:
    registry.has(present=False)
    registry.fail(message, code)
    assert await registry.start("IfNotPresent") == expected


async def test_an_image_that_cannot_be_inspected(registry: Registry) -> None:
    registry.server.fail("ImageStatus", grpc.StatusCode.UNKNOWN, "disk error")
    assert await registry.start("Never") == (
        'ImageInspectError: Failed to inspect image "reg.io/x:1": disk error'
    )


async def test_each_credential_is_tried(registry: Registry) -> None:
    login = base64.b64encode(json.dumps({"auths": {"reg.io": {"username": "u"}}}).encode())
    registry.secrets = (Secret(data={".dockerconfigjson": login.decode()}),) * 3
    registry.has(present=False)
    registry.fail("denied")
    assert await registry.start("Always") == "ErrImagePull: denied"
    assert registry.pulls == 3
