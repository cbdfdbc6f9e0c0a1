"""Shutdown groups and their time limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.testing.builders import make_pod
from podstatus.workers.shutdown.plan import (
    SYSTEM_CRITICAL_PRIORITY,
    ShutdownGroup,
    ShutdownPeriod,
    default_periods,
    grace_in_group,
    group_by_priority,
    total_seconds,
)

CRITICAL = SYSTEM_CRITICAL_PRIORITY


def a_pod(priority: int | None, grace: int | None = 30) -> Pod:
    pod = make_pod(f"p{priority}", uid=f"uid-{priority}")
    spec = structs.replace(pod.spec, priority=priority, termination_grace_period_seconds=grace)
    return structs.replace(pod, spec=spec)


def periods(*pairs: tuple[int, int]) -> list[ShutdownPeriod]:
    return [ShutdownPeriod(priority=priority, seconds=seconds) for priority, seconds in pairs]


@pytest.mark.parametrize(
    ("total", "critical", "expected"),
    [
        (30, 10, [(0, 20), (CRITICAL, 10)]),
        (30, 0, [(0, 30), (CRITICAL, 0)]),
        (30, 30, [(0, 0), (CRITICAL, 30)]),
        (10, 30, [(0, 0), (CRITICAL, 10)]),
        (0, 0, [(0, 0), (CRITICAL, 0)]),
    ],
)
def test_critical_pods_have_the_end_of_the_time(
    total: float, critical: float, expected: list[tuple[int, int]]
) -> None:
    assert [(it.priority, it.seconds) for it in default_periods(total, critical)] == expected


# Cases of upstream's TestGroupByPriority, and edge cases.
@pytest.mark.parametrize(
    ("priority", "group"),
    [
        (None, 0),
        (-2_000_000_000, 0),
        (-1, 0),
        (0, 0),
        (9_999, 0),
        (10_000, 10_000),
        (10_001, 10_000),
        (99_999, 10_000),
        (100_000, 100_000),
        (CRITICAL - 1, 100_000),
        (CRITICAL, CRITICAL),
        (CRITICAL + 1000, CRITICAL),
    ],
)
def test_a_pod_ends_with_the_highest_period_that_is_not_above_it(
    priority: int | None, group: int
) -> None:
    given_periods = periods((CRITICAL, 1), (10_000, 3), (0, 4), (100_000, 2))
    (found,) = group_by_priority(given_periods, [a_pod(priority)])
    assert found.priority == group


def test_lowest_priority_terminates_first_and_empty_groups_are_skipped() -> None:
    given_periods = periods((0, 4), (10, 3), (20, 2))
    groups = group_by_priority(given_periods, [a_pod(25), a_pod(-3), a_pod(5)])
    assert [(it.priority, it.seconds, len(it.pods)) for it in groups] == [(0, 4, 2), (20, 2, 1)]


@given(
    st.dictionaries(st.integers(-5, 5), st.integers(0, 60), min_size=1),
    st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=12),
)
def test_every_pod_is_in_one_group_and_none_ends_before_one_of_less_importance(
    seconds: dict[int, int], priorities: list[int | None]
) -> None:
    groups = group_by_priority(periods(*seconds.items()), map(a_pod, priorities))
    order = [pod.spec.priority or 0 for group in groups for pod in group.pods]
    assert sorted(order) == sorted(priority or 0 for priority in priorities)
    highest = [max(pod.spec.priority or 0 for pod in group.pods) for group in groups]
    lowest = [min(pod.spec.priority or 0 for pod in group.pods) for group in groups]
    assert all(low > high for high, low in zip(highest, lowest[1:], strict=False))
    assert sum(group.seconds for group in groups) <= total_seconds(periods(*seconds.items()))


@pytest.mark.parametrize(
    ("own", "of_group", "seconds"),
    [(5, 20, 5), (60, 20, 20), (None, 20, 20), (0, 20, 0), (5, 0, 0)],
)
def test_a_pod_gets_its_own_grace_within_that_of_its_group(
    own: int | None, of_group: int, seconds: int
) -> None:
    group = ShutdownGroup(priority=0, seconds=of_group, pods=())
    assert grace_in_group(group, a_pod(0, own)) == seconds
