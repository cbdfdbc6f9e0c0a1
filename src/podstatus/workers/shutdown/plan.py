"""Order and time limits of the pods of a node that shuts down.

    shutdownGracePeriod: 30s                 priority below 2000000000    20 s
    shutdownGracePeriodCriticalPods: 10s     2000000000 and above         10 s, after the others

Upstream: groupByPriority and migrateConfig, nodeshutdown_manager.go v1.36.4.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podstatus.kube.objects.pod import Pod

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
"""Priority of `system-cluster-critical`: such pods terminate after all others."""


class ShutdownPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """Time limit for pods of this priority up to the priority of the next period."""

    priority: int
    seconds: int


class ShutdownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are terminated at the same time."""

    priority: int
    seconds: int
    pods: tuple[Pod, ...]


def default_periods(total: float, critical: float) -> tuple[ShutdownPeriod, ShutdownPeriod]:
    """Two periods, for regular and critical pods, in whole seconds."""
    last = min(int(critical), int(total))
    return (
        ShutdownPeriod(priority=0, seconds=int(total) - last),
        ShutdownPeriod(priority=SYSTEM_CRITICAL_PRIORITY, seconds=last),
    )


def group_by_priority(
    periods: Sequence[ShutdownPeriod], pods: Iterable[Pod]
) -> tuple[ShutdownGroup, ...]:
    """Group the pods by period, lowest priority first; empty groups are left out.

    A pod belongs to the highest period that is not above its priority, or else to the lowest.
    """
    ordered = sorted(periods, key=lambda period: period.priority)
    members: list[list[Pod]] = [[] for _ in ordered]
    for pod in pods:
        below = sum(period.priority <= (pod.spec.priority or 0) for period in ordered)
        members[max(0, below - 1)].append(pod)
    return tuple(
        ShutdownGroup(priority=period.priority, seconds=period.seconds, pods=tuple(pods_of_period))
        for period, pods_of_period in zip(ordered, members, strict=True)
        if pods_of_period
    )


def grace_in_group(group: ShutdownGroup, pod: Pod) -> int:
    """Grace period of a pod in seconds: its own, at most the group's time limit."""
    own = pod.spec.termination_grace_period_seconds
    return group.seconds if own is None else min(own, group.seconds)


def total_seconds(periods: Iterable[ShutdownPeriod]) -> int:
    """Seconds that a shutdown takes if every group uses its time limit."""
    return sum(period.seconds for period in periods)
