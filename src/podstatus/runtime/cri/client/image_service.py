"""The calls of ImageService that the runtime needs, each with its deadline.

Upstream: remoteImageService, cri-client v0.36.4, pkg/remote_image.go.
"""

from typing import Final

from podstatus.runtime.cri.api import images as i
from podstatus.runtime.cri.client.channel import CriChannel

_SERVICE: Final = "ImageService"
_PULL_SECONDS: Final = 3600.0
"""Upstream has no limit. A pull of one hour has failed, and would block its pod for ever."""


class ImageService:
    """Typed calls. All raise RuntimeDownError and CriCallError."""

    def __init__(self, channel: CriChannel, *, request_seconds: float) -> None:
        self._channel = channel
        self._seconds = request_seconds

    async def image_status(self, image: str) -> i.CriImage | None:
        """Return an image; None if it is not on this machine."""
        request = i.CriImageStatusRequest(image=i.CriImageSpec(image=image))
        response = await self._channel.call(
            _SERVICE, request, i.CriImageStatusResponse, self._seconds
        )
        return response.image

    async def pull_image(self, image: str, auth: i.CriAuthConfig | None) -> str:
        """Pull an image; return its reference."""
        request = i.CriPullImageRequest(image=i.CriImageSpec(image=image), auth=auth)
        response = await self._channel.call(
            _SERVICE, request, i.CriPullImageResponse, _PULL_SECONDS
        )
        return response.image_ref
