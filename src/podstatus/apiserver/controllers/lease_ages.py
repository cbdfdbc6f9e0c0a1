"""How old the Leases of nodes are: pods are not bound to a node whose Lease has expired.

The node monitor marks a node as Unknown after a grace period, which may be longer than the Lease,
and which begins when the server starts. The scheduler does not wait for it: a pod that is bound to
a node that is gone starts only after an eviction, a pod that stays pending starts elsewhere.
"""

from podstatus.apiserver.storage.store import StorageKey
from podstatus.base.clock import Clock
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.cluster import Lease

LEASE_NAMESPACE = "kube-node-lease"
"""Holds one Lease per node, of its name."""


class LeaseAges:
    """When each Lease expires, measured by the monotonic clock from its observation.

    A Lease that was there at the start is as old as its `renewTime` says.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expires_at: dict[str, int] = {}
        self._started = False

    def start(self) -> None:
        """From now on each changed Lease has just been renewed."""
        self._started = True

    def observe(self, key: StorageKey, data: bytes | None) -> bool:
        """Record a Lease, None if it was deleted; return whether an expired one was renewed."""
        if key.namespace != LEASE_NAMESPACE:
            return False
        was_expired = self.is_expired(key.name)
        self._expires_at.pop(key.name, None)
        if data is not None:
            self._record(key.name, data)
        return was_expired and not self.is_expired(key.name)

    def is_expired(self, node: str) -> bool:
        """Return whether the node has a Lease that was not renewed in time."""
        at = self._expires_at.get(node)
        return at is not None and self._clock.monotonic() > at

    def _record(self, node: str, data: bytes) -> None:
        try:
            spec = decode(data, Lease).spec
        except DecodeError:
            return
        if spec.renew_time is None or not spec.lease_duration_seconds:
            return
        age = 0 if self._started else max(0, self._clock.now() - spec.renew_time.unix_nanos())
        self._expires_at[node] = self._clock.monotonic() - age + spec.lease_duration_seconds * 10**9
