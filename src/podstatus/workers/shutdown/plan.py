"""In which order the pods of a node end when it shuts down, and how long they get.

    shutdownGracePeriod: 30s                 priority below 2000000000    20 s
    shutdownGracePeriodCriticalPods: 10s     2000000000 and above         10 s, after the others

Upstream: groupByPriority and migrateConfig, nodeshutdown_manager.go v1.36.4.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podstatus.kube.objects.pod import Pod

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
"""Of `system-cluster-critical`, and of all that must outlive the others."""


class ShutdownPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """How long pods of a priority, and those above it that have no period of their own, get."""

    priority: int
    seconds: int


class ShutdownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that end together."""

    priority: int
    seconds: int
    pods: tuple[Pod, ...]


def default_periods(total: float, critical: float) -> tuple[ShutdownPeriod, ShutdownPeriod]:
    """The periods of a node that knows critical pods and others only, in whole seconds."""
    last = min(int(critical), int(total))
    return (
        ShutdownPeriod(priority=0, seconds=int(total) - last),
        ShutdownPeriod(priority=SYSTEM_CRITICAL_PRIORITY, seconds=last),
    )


def group_by_priority(
    periods: Sequence[ShutdownPeriod], pods: Iterable[Pod]
) -> tuple[ShutdownGroup, ...]:
    """Who ends together, the least important first; groups without a pod are left out.

    A pod belongs to the highest period that is not above its priority, or to the lowest of all.
    """
    ordered = sorted(periods, key=lambda period: period.priority)
    members: list[list[Pod]] = [[] for _ in ordered]
    for pod in pods:
        below = sum(period.priority <= (pod.spec.priority or 0) for period in ordered)
        members[max(0, below - 1)].append(pod)
    return tuple(
        ShutdownGroup(priority=period.priority, seconds=period.seconds, pods=tuple(found))
        for period, found in zip(ordered, members, strict=True)
        if found
    )


def grace_in_group(group: ShutdownGroup, pod: Pod) -> int:
    """How many seconds a pod gets: its own grace, unless its group has less."""
    own = pod.spec.termination_grace_period_seconds
    return group.seconds if own is None else min(own, group.seconds)


def total_seconds(periods: Iterable[ShutdownPeriod]) -> int:
    """How many seconds it takes if every group needs all of its time."""
    return sum(period.seconds for period in periods)
