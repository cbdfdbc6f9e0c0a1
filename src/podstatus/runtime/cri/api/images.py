"""Messages about images and their pull."""

from collections.abc import Mapping

from podstatus.runtime.cri.api.codec import CriMessage
from podstatus.runtime.cri.api.security import CriInt64Value


class CriImageSpec(CriMessage, frozen=True, kw_only=True):
    image: str = ""
    annotations: Mapping[str, str] = {}
    user_specified_image: str = ""


class CriImageStatusRequest(CriMessage, frozen=True, kw_only=True):
    image: CriImageSpec | None = None
    verbose: bool = False


class CriImage(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()
    size: int = 0
    uid: CriInt64Value | None = None
    username: str = ""


class CriImageStatusResponse(CriMessage, frozen=True, kw_only=True):
    image: CriImage | None = None


class CriAuthConfig(CriMessage, frozen=True, kw_only=True):
    username: str = ""
    password: str = ""
    auth: str = ""
    server_address: str = ""
    identity_token: str = ""
    registry_token: str = ""

    def __repr__(self) -> str:
        """Return a text without the credentials."""
        return "CriAuthConfig(…)"


class CriPullImageRequest(CriMessage, frozen=True, kw_only=True):
    image: CriImageSpec | None = None
    auth: CriAuthConfig | None = None


class CriPullImageResponse(CriMessage, frozen=True, kw_only=True):
    image_ref: str = ""
