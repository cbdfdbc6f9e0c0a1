"""What a Lease says about leadership, and how it is acquired, renewed and released.

The times in a Lease are for people. Whether it has expired is measured from when a change of it
was observed, with the monotonic clock of the observer: clocks of two machines are never compared.

Upstream: LeaderElector.tryAcquireOrRenew, release and isLeaseValid, leaderelection.go;
LeaseLock, resourcelock/leaselock.go; client-go v0.36.4.
"""

from collections.abc import Iterator

import msgspec
from msgspec import structs

from podstatus.kube.objects.cluster import Lease, LeaseSpec
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.scalars.time import MicroTime

JITTER_FACTOR = 1.2
"""Maximum random extension of the period between two attempts to acquire, as a fraction of it."""
_SECOND = 1_000_000_000
_RELEASED_SECONDS = 1
"""Lease duration of a released Lease; a candidate does not wait for it."""


class ElectionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate, its Lease, and the timing, which all candidates must share."""

    identity: str
    """Unique among all processes."""
    namespace: str
    name: str
    lease_duration_seconds: int = 15
    """How long candidates wait after the last observed renewal."""
    renew_deadline_seconds: float = 10.0
    """How long a leader leads after its last renewal."""
    retry_period_seconds: float = 2.0

    @property
    def lease_name(self) -> str:
        """The namespace and name of the Lease."""
        return f"{self.namespace}/{self.name}"


def timing_errors(
    *, lease_duration: float, renew_deadline: float, retry_period: float
) -> Iterator[str]:
    """Yield what is wrong with a timing, in seconds; the rules are upstream's."""
    if lease_duration <= renew_deadline:
        yield (
            f"the lease duration of {lease_duration:g} s must be longer than the renew deadline of "
            f"{renew_deadline:g} s, by as much as notifications in flight may take to end"
        )
    if renew_deadline <= JITTER_FACTOR * retry_period:
        yield (
            f"the renew deadline of {renew_deadline:g} s must be longer than {JITTER_FACTOR:g} "
            f"times the retry period of {retry_period:g} s"
        )


class ObservedLease(msgspec.Struct, frozen=True, kw_only=True):
    """The newest copy of the Lease, and since when it has had this content."""

    lease: Lease
    observed_at: int
    """Monotonic time in nanoseconds at which this content was first seen."""

    @property
    def holder(self) -> str:
        """The identity of the holder; empty: none."""
        return self.lease.spec.holder_identity or ""

    def is_held_by_other(self, identity: str, now: int) -> bool:
        """Whether another candidate may lead at `now`, in monotonic nanoseconds."""
        if self.holder in ("", identity):
            return False
        duration = self.lease.spec.lease_duration_seconds or 0
        return now < self.observed_at + duration * _SECOND


def observe(before: ObservedLease | None, lease: Lease, now: int) -> ObservedLease:
    """Return what is known after a copy of the Lease was read or written at `now`."""
    if before is not None and before.lease.spec == lease.spec:
        return structs.replace(before, lease=lease)
    return ObservedLease(lease=lease, observed_at=now)


def new_lease(config: ElectionConfig, wall: int) -> Lease:
    """Return a Lease that the candidate holds, to be created."""
    return Lease(
        kind="Lease",
        api_version="coordination.k8s.io/v1",
        metadata=ObjectMeta(name=config.name, namespace=config.namespace),
        spec=_held_spec(config, wall, LeaseSpec(lease_transitions=0)),
    )


def held_lease(lease: Lease, config: ElectionConfig, wall: int) -> Lease:
    """Return the Lease renewed by its holder, or acquired by this candidate."""
    spec = lease.spec
    if spec.holder_identity != config.identity:
        transitions = (spec.lease_transitions or 0) + 1
        spec = structs.replace(spec, acquire_time=None, lease_transitions=transitions)
    return structs.replace(lease, spec=_held_spec(config, wall, spec))


def released_lease(lease: Lease, wall: int) -> Lease:
    """Return the Lease without a holder, so that another candidate acquires it at once."""
    now = MicroTime.from_unix_nanos(wall)
    spec = structs.replace(
        lease.spec,
        holder_identity="",
        lease_duration_seconds=_RELEASED_SECONDS,
        acquire_time=now,
        renew_time=now,
    )
    return structs.replace(lease, spec=spec)


def _held_spec(config: ElectionConfig, wall: int, before: LeaseSpec) -> LeaseSpec:
    now = MicroTime.from_unix_nanos(wall)
    return structs.replace(
        before,
        holder_identity=config.identity,
        lease_duration_seconds=config.lease_duration_seconds,
        acquire_time=before.acquire_time or now,
        renew_time=now,
    )
