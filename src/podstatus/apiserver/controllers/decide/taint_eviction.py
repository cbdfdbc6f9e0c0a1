"""When a pod is evicted by the NoExecute taints of its node.

Upstream: processPodOnNode and getMinTolerationTime, pkg/controller/tainteviction/taint_eviction.go,
GetMatchingTolerations, pkg/apis/core/v1/helper/helpers.go v1.36.4.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podstatus.kube.objects.node import Taint
from podstatus.kube.objects.pod_spec import Toleration
from podstatus.kube.taints import NO_EXECUTE, is_taint_tolerated


class EvictAt(msgspec.Struct, frozen=True):
    """A scheduled eviction; monotonic, in nanoseconds."""

    at: int


class NoEviction(msgspec.Struct, frozen=True):
    """The pod tolerates all taints without a limit."""


class ScheduledAlready(msgspec.Struct, frozen=True):
    """The time of the eviction stays, even if it would be sooner now."""


EvictionDecision = EvictAt | NoEviction | ScheduledAlready


def no_execute_taints(taints: Iterable[Taint] | None) -> tuple[Taint, ...]:
    """Return the taints that evict pods."""
    return tuple(taint for taint in taints or () if taint.effect == NO_EXECUTE)


def decide_eviction(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], now: int, *, is_scheduled: bool
) -> EvictionDecision:
    """Decide when to evict a pod from a node with these NoExecute taints.

    The time a pod tolerates counts from now, when the taint was observed, not from its `timeAdded`:
    so after an outage of this server, nodes have the time to report before pods are evicted.
    """
    matching = [_first_matching(taint, tolerations) for taint in taints]
    if None in matching:
        return EvictAt(now)
    limits = [it.toleration_seconds for it in matching if it and it.toleration_seconds is not None]
    if not limits:
        return NoEviction()
    if is_scheduled:
        return ScheduledAlready()
    return EvictAt(now + max(0, min(limits)) * 10**9)


def _first_matching(taint: Taint, tolerations: Sequence[Toleration]) -> Toleration | None:
    return next((it for it in tolerations if is_taint_tolerated(taint, (it,))), None)
