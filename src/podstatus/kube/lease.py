"""The Lease as it travels."""

from msgspec import field

from podstatus.kube.meta import ObjectMeta
from podstatus.kube.times import MicroTime
from podstatus.kube.wire import Wire


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """`coordination.k8s.io/v1.LeaseSpec`."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Wire, frozen=True, kw_only=True):
    """`coordination.k8s.io/v1.Lease`."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec = field(default_factory=LeaseSpec)
