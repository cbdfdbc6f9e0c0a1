"""TokenReview and TokenRequest (authentication.k8s.io/v1), SubjectAccessReview
(authorization.k8s.io/v1)."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.objects.meta import LabelSelectorRequirement
from podstatus.kube.scalars.time import Time


class UserInfo(Wire, frozen=True, kw_only=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class TokenReviewSpec(Wire, frozen=True, kw_only=True):
    token: str = ""
    audiences: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "TokenReviewSpec(…)"


class TokenReviewStatus(Wire, frozen=True, kw_only=True):
    authenticated: bool = False
    user: UserInfo = field(default_factory=UserInfo)
    audiences: tuple[str, ...] | None = None
    error: str = ""


class TokenReview(KubeObject, frozen=True, kw_only=True):
    spec: TokenReviewSpec = field(default_factory=TokenReviewSpec)
    status: TokenReviewStatus = field(default_factory=TokenReviewStatus)


class FieldSelectorRequirement(Wire, frozen=True, kw_only=True):
    key: str = field(default_factory=str)
    operator: str = field(default_factory=str)
    values: tuple[str, ...] | None = None


class FieldSelectorAttributes(Wire, frozen=True, kw_only=True):
    raw_selector: str = ""
    requirements: tuple[FieldSelectorRequirement, ...] | None = None


class LabelSelectorAttributes(Wire, frozen=True, kw_only=True):
    raw_selector: str = ""
    requirements: tuple[LabelSelectorRequirement, ...] | None = None


class ResourceAttributes(Wire, frozen=True, kw_only=True):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class NonResourceAttributes(Wire, frozen=True, kw_only=True):
    path: str = ""
    verb: str = ""


class SubjectAccessReviewSpec(Wire, frozen=True, kw_only=True):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None
    uid: str = ""


class SubjectAccessReviewStatus(Wire, frozen=True, kw_only=True):
    allowed: bool = field(default_factory=bool)
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SubjectAccessReview(KubeObject, frozen=True, kw_only=True):
    spec: SubjectAccessReviewSpec = field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)


class BoundObjectReference(Wire, frozen=True, kw_only=True):
    """`authentication/v1.BoundObjectReference`: the object to whose lifetime a token is bound."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Wire, frozen=True, kw_only=True):
    audiences: tuple[str, ...] | None = field(default_factory=nil)
    expiration_seconds: Int64 | None = field(default_factory=nil)
    bound_object_ref: BoundObjectReference | None = field(default_factory=nil)


class TokenRequestStatus(Wire, frozen=True, kw_only=True):
    token: str = field(default_factory=str)
    expiration_timestamp: Time = field(default_factory=Time)

    def __repr__(self) -> str:
        return f"TokenRequestStatus(token=…, expiration_timestamp={self.expiration_timestamp!r})"


class TokenRequest(KubeObject, frozen=True, kw_only=True):
    spec: TokenRequestSpec = field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = field(default_factory=TokenRequestStatus)
