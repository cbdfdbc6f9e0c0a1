"""Makes sure that the image of a container is on this machine.

Upstream: EnsureImageExists, pkg/kubelet/images/image_manager.go v1.36.4. An image that is present
may be used by every pod: the kubelet's record of who pulled it with which secret is not kept.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.kube.objects.cluster import Secret
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.duration import format_duration
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.cri.api.images import CriAuthConfig, CriImage
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.image_service import ImageService
from podstatus.runtime.cri.model.image_names import image_to_pull, pull_policy, repository
from podstatus.runtime.cri.model.pull_secrets import credentials
from podstatus.runtime.port import CannotStartError

PullSecrets = Callable[[], Awaitable[Iterable[Secret]]]
_SECOND: Final = 1_000_000_000
_BACKOFF: Final = Backoff(initial_seconds=10.0, max_seconds=300.0, jitter=0.0)
"""Upstream: imageBackOffPeriod and MaxImageBackOff, kubelet.go v1.36.4."""
_UNKNOWN: Final = "UNKNOWN"
_PULL, _BACK_OFF = "ErrImagePull", "ImagePullBackOff"
_NEVER, _INSPECT = "ErrImageNeverPull", "ImageInspectError"
_SPECIAL: Final = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}
"""Prefixes by which runtimes say what failed."""


class _FailedPull(msgspec.Struct, frozen=True):
    backoff: Backoff
    at: int
    """When it failed, monotonic."""
    message: str


class ImagePuller:
    """Pulls images with back-off, by pod and image. Not thread-safe: for one event loop."""

    def __init__(self, images: ImageService, clock: Clock) -> None:
        self._images = images
        self._clock = clock
        self._failed: dict[tuple[PodUID, str], _FailedPull] = {}
        self._messages: dict[str, str] = {}

    async def ensure_image(self, pod: Pod, container: Container, secrets: PullSecrets) -> CriImage:
        """Return the image, pulled if its policy says so. Raises CannotStartError.

        `secrets` fetches the secrets of the pod; it is called before a pull only.
        """
        name = image_to_pull(container.image)
        policy = pull_policy(container.image, container.image_pull_policy)
        image = await self._find(name) if policy != "Always" else None
        if image is not None:
            self._messages[container.image] = (
                f"Container image {go_quoted(container.image)} already present on machine"
            )
            return image
        if policy == "Never":
            raise CannotStartError(
                _NEVER,
                f"Container image {go_quoted(container.image)} is not present with pull policy of "
                "Never",
            )
        return await self._pull(pod, container.image, name, secrets)

    def image_message(self, image: str) -> str:
        """Return the message of the event Pulled for the last start with this image."""
        default = f"Container image {go_quoted(image)} already present on machine"
        return self._messages.pop(image, default)

    def forget(self, uid: PodUID) -> None:
        """Drop the back-offs of a pod."""
        self._failed = {key: value for key, value in self._failed.items() if key[0] != uid}

    async def _find(self, name: str) -> CriImage | None:
        try:
            return await self._images.image_status(name)
        except CriCallError as error:
            message = f"Failed to inspect image {go_quoted(name)}: {error.message}"
            raise CannotStartError(_INSPECT, message) from error

    async def _pull(self, pod: Pod, image: str, name: str, secrets: PullSecrets) -> CriImage:
        key, failed = (pod.uid, image), self._failed.get((pod.uid, image))
        if failed is not None:
            self._check_backoff(image, failed)
        began = self._clock.monotonic()
        try:
            auths = credentials(repository(name), await secrets())
            await self._try_credentials(name, auths)
        except CriCallError as error:
            backoff = failed.backoff if failed is not None else _BACKOFF
            reason, message = _pull_failure(image, error)
            now = self._clock.monotonic()
            self._failed[key] = _FailedPull(backoff.failed(), now, f"{reason}: {message}")
            raise CannotStartError(reason, message) from error
        self._failed.pop(key, None)
        pulled = await self._find(name)
        if pulled is None:
            raise CannotStartError(
                _INSPECT, f"image {go_quoted(image)} was pulled, and removed at once"
            )
        self._messages[image] = self._pulled_message(image, pulled, began)
        return pulled

    def _pulled_message(self, image: str, pulled: CriImage, began: int) -> str:
        milliseconds = (self._clock.monotonic() - began) // 1_000_000
        taken = format_duration(milliseconds / 1000)
        return (
            f"Successfully pulled image {go_quoted(image)} in {taken} ({taken} including waiting). "
            f"Image size: {pulled.size} bytes."
        )

    def _check_backoff(self, image: str, failed: _FailedPull) -> None:
        waited = (self._clock.monotonic() - failed.at) / _SECOND
        if waited < failed.backoff.delay(0.0):
            message = f"Back-off pulling image {go_quoted(image)}: {failed.message}"
            raise CannotStartError(_BACK_OFF, message)

    async def _try_credentials(self, name: str, auths: tuple[CriAuthConfig, ...]) -> None:
        """Pull with the first credentials that work; without any if there are none."""
        for last, auth in _with_last(auths or (None,)):
            try:
                await self._images.pull_image(name, auth)
            except CriCallError:
                if last:
                    raise
            else:
                return


def _with_last(
    auths: tuple[CriAuthConfig | None, ...],
) -> Iterable[tuple[bool, CriAuthConfig | None]]:
    return ((number == len(auths), auth) for number, auth in enumerate(auths, 1))


def _pull_failure(image: str, error: CriCallError) -> tuple[str, str]:
    """Return reason and message, in upstream's words: evalCRIPullErr."""
    for reason, why in _SPECIAL.items():
        if error.message.startswith(reason):
            rest = error.message.removeprefix(reason)
            return reason, f"image pull failed for {image} because {why}{rest}"
    if error.code == _UNKNOWN:
        return _PULL, error.message
    code = error.code.title().replace("_", "")
    return _PULL, f"rpc error: code = {code} desc = {error.message}"
