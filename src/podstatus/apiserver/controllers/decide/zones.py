"""How fast nodes may get NoExecute taints, by the health of their zone.

A taint NoExecute evicts pods, so a controller that cannot hear healthy nodes would empty a cluster.
Therefore taints are added slowly, more slowly in a zone where most nodes are silent, and not at all
while no node of the cluster is Ready: then the fault is likely on this side.

Upstream: handleDisruption, ComputeZoneState and setLimiterInZone,
pkg/controller/nodelifecycle/node_lifecycle_controller.go v1.36.4; SwapLimiter,
pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec
from msgspec import structs

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.base.token_bucket import TokenBucket

ZoneName = tuple[str, str]
"""Region and zone of the labels of nodes; empty without them."""

_MIN_UNREADY_NODES = 3
"""Fewer never make a partial disruption."""


class ZoneState(Enum):
    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


class ClusterTransition(Enum):
    """What has become of the cluster as a whole."""

    NONE = "none"
    ENTERED_FULL_DISRUPTION = "entered"
    LEFT_FULL_DISRUPTION = "left"


class Disruption(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all zones after a pass."""

    states: dict[ZoneName, ZoneState]
    rates: dict[ZoneName, float]
    """The rates, in nodes per second, of those zones where it may have changed."""
    transition: ClusterTransition


class ZoneLimiter(msgspec.Struct, frozen=True):
    """Allows one node at once, then nodes at a rate; none at a rate of 0."""

    rate: float
    bucket: TokenBucket | None

    @classmethod
    def at_rate(cls, rate: float) -> "ZoneLimiter":
        return cls(rate, TokenBucket.per_second(rate, burst=1) if rate > 0 else None)

    def try_acquire(self, now: int) -> tuple["ZoneLimiter", bool]:
        """Return the limiter afterwards, and whether a node may be tainted now (monotonic)."""
        if self.bucket is None:
            return self, False
        bucket, allowed = self.bucket.try_acquire(now)
        return structs.replace(self, bucket=bucket), allowed

    def with_rate(self, rate: float, now: int) -> "ZoneLimiter":
        """Return the limiter at another rate; if nothing is allowed now, it stays so."""
        if rate == self.rate:
            return self
        _, allowed = self.try_acquire(now)
        changed = ZoneLimiter.at_rate(rate)
        return changed if allowed else changed.try_acquire(now)[0]


def decide_disruption(
    states: Mapping[ZoneName, ZoneState],
    ready: Mapping[ZoneName, Sequence[bool]],
    policy: NodeMonitorPolicy,
) -> Disruption:
    """Return the state of the zones; `ready` says of the nodes of each whether they are Ready."""
    before = {zone: states.get(zone, ZoneState.INITIAL) for zone in ready}
    after = {zone: zone_state(nodes, policy) for zone, nodes in ready.items()}
    was_full = all(state is ZoneState.FULL_DISRUPTION for state in before.values())
    is_full = all(state is ZoneState.FULL_DISRUPTION for state in after.values())
    if is_full:
        return Disruption(
            states=after,
            rates={} if was_full else dict.fromkeys(after, 0.0),
            transition=ClusterTransition.NONE
            if was_full
            else ClusterTransition.ENTERED_FULL_DISRUPTION,
        )
    rates = {
        zone: _rate(state, len(ready[zone]), policy)
        for zone, state in after.items()
        if was_full or state is not before[zone]
    }
    transition = ClusterTransition.LEFT_FULL_DISRUPTION if was_full else ClusterTransition.NONE
    return Disruption(states=after, rates=rates, transition=transition)


def zone_state(ready: Sequence[bool], policy: NodeMonitorPolicy) -> ZoneState:
    """Return the state of a zone by its nodes, which are Ready or not."""
    unready = len(ready) - sum(ready)
    if unready and unready == len(ready):
        return ZoneState.FULL_DISRUPTION
    share = unready / len(ready) if ready else 0.0
    if unready >= _MIN_UNREADY_NODES and share >= policy.unhealthy_zone_threshold:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def _rate(state: ZoneState, nodes: int, policy: NodeMonitorPolicy) -> float:
    if state is not ZoneState.PARTIAL_DISRUPTION:
        return policy.node_eviction_rate
    is_large = nodes > policy.large_cluster_size_threshold
    return policy.secondary_node_eviction_rate if is_large else 0.0
