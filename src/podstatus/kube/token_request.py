"""Tokens of service accounts as they are asked for and handed out."""

from msgspec import field

from podstatus.kube.meta import ObjectMeta
from podstatus.kube.times import Time
from podstatus.kube.wire import Wire, nil


class BoundObjectReference(Wire, frozen=True, kw_only=True):
    """`authentication/v1.BoundObjectReference`: with whom a token ends."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Wire, frozen=True, kw_only=True):
    """`authentication/v1.TokenRequestSpec`."""

    audiences: tuple[str, ...] | None = field(default_factory=nil)
    expiration_seconds: int | None = field(default_factory=nil)
    bound_object_ref: BoundObjectReference | None = field(default_factory=nil)


class TokenRequestStatus(Wire, frozen=True, kw_only=True):
    """`authentication/v1.TokenRequestStatus`."""

    token: str = field(default_factory=str)
    expiration_timestamp: Time = field(default_factory=Time)

    def __repr__(self) -> str:
        return f"TokenRequestStatus(token=…, expiration_timestamp={self.expiration_timestamp!r})"


class TokenRequest(Wire, frozen=True, kw_only=True):
    """`authentication/v1.TokenRequest`."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: TokenRequestSpec = field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = field(default_factory=TokenRequestStatus)
