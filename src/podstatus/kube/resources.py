"""Resource requests, limits and claims as they travel."""

from msgspec import field

from podstatus.kube.quantity import Quantity
from podstatus.kube.wire import Wire


class ResourceClaim(Wire, frozen=True, kw_only=True):
    """`v1.ResourceClaim`."""

    name: str = field(default_factory=str)
    request: str = ""


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    """`v1.ResourceRequirements`."""

    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None
    claims: tuple[ResourceClaim, ...] | None = None


class VolumeResourceRequirements(Wire, frozen=True, kw_only=True):
    """`v1.VolumeResourceRequirements`."""

    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None
