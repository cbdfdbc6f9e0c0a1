"""The order in which limits are raised and lowered, and when memory is not lowered."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.runtime.cpu_and_memory_limits import CgroupLimits
from podstatus.runtime.process.cgroups.model.interface_files import CgroupVersion
from podstatus.runtime.process.cgroups.model.resize_plan import (
    POD,
    CgroupResize,
    memory_decrease_error,
    plan_writes,
)

ABOVE, APP = "attempting to set {} memory limit (8) below current usage ({})", 'container "app"'


def held(
    quota: tuple[int | None, int | None] = (None, None),
    memory: tuple[int | None, int | None] = (None, None),
    used: int | None = 0,
) -> CgroupResize:
    """A resize from the first limits to the second."""
    desired = CgroupLimits(cpu_shares=2, cpu_quota=quota[1], memory_bytes=memory[1])
    return CgroupResize(
        desired=desired, cpu_quota=quota[0], memory_bytes=memory[0], memory_used=used
    )


def order(pod: CgroupResize, containers: Mapping[str, CgroupResize], file: str) -> list[str]:
    writes = plan_writes(CgroupVersion.V2, pod, containers)
    return [change.container_id or "pod" for change in writes if change.setting.file == file]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (10, 20, ["pod", "a", "b"]),
        (20, 10, ["a", "b", "pod"]),
        (10, 10, ["pod", "a", "b"]),
        (None, 10, ["a", "b", "pod"]),
        (10, None, ["a", "b"]),
    ],
)
def test_a_pod_is_raised_first_and_lowered_last(
    before: int | None, after: int | None, expected: list[str]
) -> None:
    each = {"a": held((5, 5), (5, 5)), "b": held((5, 5), (5, 5))}
    assert order(held((before, after)), each, "cpu.max") == expected
    assert order(held(memory=(before, after)), each, "memory.max") == expected


def test_memory_comes_before_the_processors_and_each_has_an_order_of_its_own() -> None:
    pod = held(quota=(10, 20), memory=(20, 10))
    container = held(quota=(10, 20), memory=(20, 10))
    writes = [
        (change.container_id or "pod", change.setting.file)
        for change in plan_writes(CgroupVersion.V2, pod, {"a": container})
    ]
    assert writes == [
        ("a", "memory.max"),
        ("pod", "memory.max"),
        ("pod", "cpu.weight"),
        ("pod", "cpu.max"),
        ("a", "cpu.weight"),
        ("a", "cpu.max"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "files"),
    [
        (10, 20, ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]),
        (20, 10, ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]),
        (None, 10, ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]),
    ],
)
def test_memory_is_never_above_memory_and_swap(
    before: int | None, after: int, files: list[str]
) -> None:
    writes = plan_writes(CgroupVersion.V1, held(memory=(before, after)), {})
    assert [c.setting.file for c in writes if c.setting.controller == "memory"] == files


@given(
    pod=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    containers=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=3),
)
def test_no_quota_is_ever_above_the_one_around_it(
    pod: tuple[int, int], containers: list[tuple[int, int]]
) -> None:
    """Version 1 requires this, if it was so before and is to be so after."""
    fitting = [(min(b, pod[0]), min(a, pod[1])) for b, a in containers]
    whose = {str(number): pair for number, pair in enumerate(fitting)} | {POD: pod}
    now = {name: before for name, (before, _) in whose.items()}
    inside = {name: held(quota=pair) for name, pair in whose.items() if name}
    for change in plan_writes(CgroupVersion.V1, held(quota=pod), inside):
        if change.setting.file == "cpu.cfs_quota_us":
            now[change.container_id] = int(change.setting.text)
        assert max(now.values()) <= now[POD]
    assert now == {name: after for name, (_, after) in whose.items()}


@pytest.mark.parametrize(
    ("pod", "container", "why"),
    [
        (held(memory=(9, 8), used=7), held(), ""),
        (
            held(memory=(9, 8), used=8),
            held(),
            ABOVE.format("pod", 8),
        ),
        (
            held(),
            held(memory=(None, 8), used=9),
            ABOVE.format(APP, 9),
        ),
        (
            held(memory=(9, 8), used=10),
            held(memory=(9, 8), used=9),
            f"[{ABOVE.format('pod', 10)}, {ABOVE.format(APP, 9)}]",
        ),
        # Usage above a limit that is not lowered is not an error of the resize.
        (held(memory=(8, 9), used=20), held(memory=(8, 8), used=20), ""),
        (held(memory=(9, None), used=20), held(), ""),
        (held(memory=(9, 8), used=None), held(), ""),
    ],
)
def test_memory_is_not_lowered_below_what_is_used(
    pod: CgroupResize, container: CgroupResize, why: str
) -> None:
    message = f"cannot decrease memory limits: {why}" if why else ""
    assert memory_decrease_error(pod, {"app": container}) == message
