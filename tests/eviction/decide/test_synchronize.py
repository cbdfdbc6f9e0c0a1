"""Which pod a cycle evicts, as properties; messages and whole cycles are in test_recorded."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.eviction.decide.model import (
    SINGLE_FILESYSTEM,
    ContainerResourceUsage,
    EvictionConfig,
    EvictionDecision,
    EvictionState,
    FilesystemLayout,
    FilesystemUsage,
    NodeMemoryUsage,
    NodeResourceUsage,
    PidUsage,
    PodResourceUsage,
    UsageSummary,
)
from podstatus.eviction.decide.settings import parse_threshold_config
from podstatus.eviction.decide.storage_limits import storage_limit_evictions
from podstatus.eviction.decide.synchronize import node_reclaim, synchronize
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod, PodUID, is_critical_pod
from podstatus.kube.pod_resources import pod_request

STARVED = NodeResourceUsage(
    memory=NodeMemoryUsage(available_bytes=1, working_set_bytes=99),
    nodefs=FilesystemUsage(available_bytes=1, capacity_bytes=100, inodes=100, inodes_free=1),
    pids=PidUsage(max_pid=100, running=99),
)
SIGNALS = ("memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available")


def pod(name: str, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> Pod:
    metadata = {"name": name, "uid": f"uid-{name}", "annotations": annotations or {}}
    return from_document({"metadata": metadata, "spec": spec}, Pod)


@st.composite
def pods_and_usage(draw: st.DrawFn) -> tuple[list[Pod], dict[PodUID, PodResourceUsage]]:
    pods, usage = [], {}
    for number in range(draw(st.integers(0, 5))):
        requests = {"memory": str(draw(st.integers(0, 3)))}
        container = {"name": "c", "resources": {"requests": requests}}
        priority = draw(st.sampled_from([-1, 0, 1, 2_000_000_000]))
        source = draw(st.sampled_from(["api", "api", "file"]))
        spec = {"containers": [container], "priority": priority}
        pods.append(pod(f"p{number}", spec, {"kubernetes.io/config.source": source}))
        if draw(st.booleans()):
            amount = draw(st.integers(0, 3))
            disk = FilesystemUsage(used_bytes=amount, inodes_used=amount)
            usage[pods[-1].uid] = PodResourceUsage(
                memory_working_set_bytes=amount,
                process_count=amount,
                containers=(ContainerResourceUsage(name="c", rootfs=disk),),
            )
    return pods, usage


def cycle(signal: str, pods: list[Pod], usage: dict[PodUID, PodResourceUsage]) -> EvictionDecision:
    config = EvictionConfig(thresholds=parse_threshold_config(hard={signal: "50%"}))
    summary = UsageSummary(node=STARVED, pods=usage)
    return synchronize(EvictionState(), config, summary, pods, now=0)


@given(st.sampled_from(SIGNALS), pods_and_usage())
def test_a_pod_that_is_not_critical_is_evicted_if_there_is_one(
    signal: str, drawn: tuple[list[Pod], dict[PodUID, PodResourceUsage]]
) -> None:
    decision = cycle(signal, *drawn)
    assert decision.reclaim is not None
    eviction, ordinary = decision.reclaim.eviction, [p for p in drawn[0] if not is_critical_pod(p)]
    assert (eviction is None) == (not ordinary)
    assert eviction is None or eviction.pod in ordinary


@given(pods_and_usage())
def test_no_other_pod_precedes_the_evicted_one_for_memory(
    drawn: tuple[list[Pod], dict[PodUID, PodResourceUsage]],
) -> None:
    pods, usage = drawn
    decision = cycle("memory.available", pods, usage)
    evicted = None if decision.reclaim is None else decision.reclaim.eviction
    for other in filter(lambda it: not is_critical_pod(it), pods):
        assert evicted is not None
        assert not precedes(other, evicted.pod, usage)


def precedes(one: Pod, other: Pod, usage: dict[PodUID, PodResourceUsage]) -> bool:
    """As the documentation of Kubernetes puts it; without usage before all others."""
    measured = [usage.get(pod.uid) for pod in (one, other)]
    if measured[0] is None or measured[1] is None:
        unmeasured = (measured[0] is None, measured[1] is None)
        same = unmeasured == (True, True)
        lower = (one.spec.priority or 0) < (other.spec.priority or 0)
        return unmeasured == (True, False) or (same and lower)
    over = [
        (used.memory_working_set_bytes or 0) - pod_request(pod.spec, "memory").value
        for pod, used in zip((one, other), measured, strict=True)
        if used is not None
    ]
    if (over[0] > 0) != (over[1] > 0):
        return over[0] > 0
    if one.spec.priority != other.spec.priority:
        return (one.spec.priority or 0) < (other.spec.priority or 0)
    return over[0] > over[1]


@given(st.sampled_from(SIGNALS), pods_and_usage())
def test_a_second_cycle_without_a_new_observation_evicts_no_pod(
    signal: str, drawn: tuple[list[Pod], dict[PodUID, PodResourceUsage]]
) -> None:
    pods, usage = drawn
    at = 5
    node = NodeResourceUsage(
        memory=NodeMemoryUsage(available_bytes=1, working_set_bytes=99, at=at),
        nodefs=FilesystemUsage(
            available_bytes=1, capacity_bytes=100, inodes=100, inodes_free=1, at=at
        ),
        pids=PidUsage(max_pid=100, running=99, at=at),
    )
    config = EvictionConfig(thresholds=parse_threshold_config(hard={signal: "50%"}))
    summary = UsageSummary(node=node, pods=usage)
    first = synchronize(EvictionState(), config, summary, pods, now=0)
    second = synchronize(first.state, config, summary, pods, now=10_000_000_000)
    assert first.reclaim is not None
    assert second.reclaim is None
    assert second.state.node_conditions == first.state.node_conditions != ()


def test_memory_is_reclaimed_before_other_resources() -> None:
    hard = {"pid.available": "50%", "nodefs.available": "50%", "memory.available": "50%"}
    config = EvictionConfig(thresholds=parse_threshold_config(hard=hard))
    decision = synchronize(EvictionState(), config, UsageSummary(node=STARVED), [], now=0)
    assert decision.reclaim is not None
    assert decision.reclaim.resource == "memory"
    assert decision.reclaim.event_message == "Attempting to reclaim memory"
    assert decision.state.node_conditions == ("MemoryPressure", "DiskPressure", "PIDPressure")


@pytest.mark.parametrize(
    ("layout", "signal", "expected"),
    [
        (
            SINGLE_FILESYSTEM,
            "nodefs.available",
            ("DeleteAllUnusedContainers", "DeleteUnusedImages"),
        ),
        (SINGLE_FILESYSTEM, "memory.available", ()),
        (SINGLE_FILESYSTEM, "pid.available", ()),
        (FilesystemLayout(dedicated_imagefs=True), "nodefs.inodesFree", ()),
        (
            FilesystemLayout(dedicated_imagefs=True, split_containerfs=True),
            "imagefs.available",
            ("DeleteUnusedImages",),
        ),
    ],
)
def test_a_node_deletes_what_is_unused_before_it_evicts(
    layout: FilesystemLayout, signal: str, expected: tuple[str, ...]
) -> None:
    assert node_reclaim(signal, layout) == expected


@pytest.mark.parametrize(
    ("spec", "usage", "limit"),
    [
        (
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1"}}]},
            PodResourceUsage(volumes={"v": FilesystemUsage(used_bytes=2)}),
            "emptydirfs.limit",
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1"}}]},
            PodResourceUsage(volumes={"v": FilesystemUsage()}),
            None,
        ),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"ephemeral-storage": "1"}}}]},
            PodResourceUsage(ephemeral_storage_bytes=2),
            "ephemeralpodfs.limit",
        ),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"ephemeral-storage": "1"}}}]},
            PodResourceUsage(
                containers=(ContainerResourceUsage(name="c", logs=FilesystemUsage(used_bytes=2)),)
            ),
            "ephemeralcontainerfs.limit",
        ),
    ],
)
def test_the_exceeded_limit_is_what_the_metric_counts(
    spec: dict[str, Any], usage: PodResourceUsage, limit: str | None
) -> None:
    evicted = pod("p", spec)
    evictions = storage_limit_evictions([evicted], {evicted.uid: usage}, SINGLE_FILESYSTEM)
    assert [eviction.signal for eviction in evictions] == ([] if limit is None else [limit])
