"""Pods are evicted when the node runs short, one at a time, and only once."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.eviction.decide.settings import parse_threshold_config
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.usage import ContainerDiskUsage, DiskUsage, PodDiskUsage
from podstatus.kube.objects.volumes import EmptyDirVolumeSource, Volume
from podstatus.kube.scalars.quantity import Quantity
from tests.eviction.scene import CONFIG, GI, MI, EvictionScene, with_requests
from tests.support.node_in_memory import a_pod

RUNNING = "Running a:running+"
EVICTED = "Failed/Evicted a:exit-143"


def _uses(*, logs: int = 0, data: int = 0) -> PodDiskUsage:
    volumes = {"data": DiskUsage(bytes=data, inodes=1)} if data else {}
    containers = {"a": ContainerDiskUsage(logs=DiskUsage(bytes=logs, inodes=1))}
    return PodDiskUsage(
        at=1, total=DiskUsage(bytes=logs + data), containers=containers, volumes=volumes
    )


def _with_volume(pod: Pod, size_limit: str) -> Pod:
    source = EmptyDirVolumeSource(size_limit=Quantity(size_limit))
    volumes = (Volume(name="data", empty_dir=source),)
    return structs.replace(pod, spec=structs.replace(pod.spec, volumes=volumes))


async def test_the_pod_furthest_above_its_request_goes_first(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(with_requests(a_pod("modest", "memory=3Gi"), {"memory": "3Gi"}))
        scene.node.create(
            with_requests(a_pod("greedy", "memory=4Gi, stop-exit=143"), {"memory": "1Gi"})
        )
        scene.node.create(with_requests(a_pod("small", "memory=500Mi"), {"memory": "100Mi"}))
        await scene.passes(20)
        assert scene.node.looks("greedy") == EVICTED
        assert [scene.node.looks(name) for name in ("modest", "small")] == [RUNNING] * 2
        pod = scene.node.pod("greedy")
        assert pod is not None
        message = (
            "The node was low on resource: memory. Threshold quantity: 1Gi, available: 524Mi. "
            "Container a was using 4Gi, request is 1Gi, has larger consumption of memory. "
        )
        assert (pod.status.reason, pod.status.message) == ("Evicted", message)
        (target,) = [c for c in pod.status.conditions or () if c.type == "DisruptionTarget"]
        assert (target.status, target.reason, target.message) == (
            "True",
            "TerminationByKubelet",
            message,
        )
        assert scene.evicted("greedy") == [f"Evicted: {message}"]
        (event,) = [event for event in scene.node.recorder.events if event.reason == "Evicted"]
        assert event.annotations == {
            "offending_containers": "a",
            "offending_containers_usage": "4Gi",
            "starved_resource": "memory",
        }
        assert scene.node_events == ["EvictionThresholdMet: Attempting to reclaim memory"]
        metrics = scene.manager.metrics
        assert metrics.evictions.snapshot() == {("memory.available",): 1}
        assert metrics.stats_age.snapshot()[("memory.available",)].count == 1


async def test_a_request_that_is_not_allocated_does_not_protect_a_pod(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(
            with_requests(a_pod("greedy", "memory=4Gi, stop-exit=143"), {"memory": "1Gi"})
        )
        await scene.passes(4)
        greedy = scene.node.pod("greedy")
        assert greedy is not None
        scene.node.create(with_requests(greedy, {"memory": "9Gi"}))  # more than the node has
        await scene.passes(4)
        scene.node.create(with_requests(a_pod("modest", "memory=3500Mi"), {"memory": "3Gi"}))
        await scene.passes(10)
        pod = scene.node.pod("greedy")
        assert pod is not None
        assert "Container a was using 4Gi, request is 1Gi, " in pod.status.message
        assert scene.node.looks("greedy") == EVICTED
        assert scene.node.looks("modest") == RUNNING


async def test_pressure_begins_at_once_and_persists_for_the_transition_period(
    tmp_path: Path,
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "memory=7500Mi, stop-exit=143"))
        await scene.passes(4)
        assert scene.conditions() == ["MemoryPressure"]
        assert scene.changes == 1
        await scene.passes(290)
        assert scene.conditions() == ["MemoryPressure"]
        await scene.passes(20)
        assert scene.conditions() == []
        assert scene.changes == 2


async def test_readings_follow_quickly_under_pressure_and_shortly_after(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        assert not await scene.read()
        scene.disk_available = GI
        assert await scene.read()
        scene.disk_available = 50 * GI
        await scene.passes(28)
        assert await scene.read()
        await scene.passes(4)
        assert not await scene.read()


async def test_disk_pressure_ends_soon_after_space_was_freed(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.disk_available = GI
        await scene.passes(10)
        assert scene.conditions() == ["DiskPressure"]
        scene.disk_available = 50 * GI
        await scene.passes(10)
        assert scene.conditions() == []


async def test_disk_pressure_that_has_ended_returns_only_when_a_threshold_is_met(
    tmp_path: Path,
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.disk_available = GI
        await scene.passes(10)
        scene.disk_available = 50 * GI
        await scene.passes(10)
        scene.disk_available = 15 * GI  # less than twice the threshold
        await scene.passes(10)
        assert scene.conditions() == []
        assert scene.changes == 2
        scene.disk_available = 9 * GI
        await scene.passes(2)
        assert scene.conditions() == ["DiskPressure"]


@pytest.mark.parametrize(
    ("requests", "is_admitted"),
    [({}, False), ({"memory": "1Mi"}, True)],
    ids=["besteffort", "burstable"],
)
async def test_memory_pressure_rejects_best_effort_pods(
    tmp_path: Path, requests: dict[str, str], *, is_admitted: bool
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "memory=7500Mi, stop-exit=143"))
        await scene.passes(10)
        scene.node.create(with_requests(a_pod("new"), requests))
        await scene.passes(4)
        pod = scene.node.pod("new")
        assert pod is not None
        if is_admitted:
            assert pod.status.phase == "Running"
        else:
            assert (pod.status.phase, pod.status.reason) == ("Failed", "Evicted")
            assert pod.status.message == (
                "Pod was rejected: The node had condition: [MemoryPressure]. "
            )


async def test_the_next_pod_waits_until_the_evicted_one_has_terminated(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        # Both must go: the second one does not while the first one still terminates.
        scene.node.create(a_pod("first", "memory=20Gi, stop-exit=143"))
        scene.node.create(a_pod("second", "memory=10Gi, stop-exit=143"))
        await scene.passes(20)
        assert scene.node.looks("first").startswith("Failed")
        assert scene.node.looks("second").startswith("Failed")
        (first,) = scene.node.event_seconds("first", "Evicted")
        (second,) = scene.node.event_seconds("second", "Evicted")
        assert second - first >= 1.0


async def test_static_pods_are_not_evicted(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        static = a_pod("static", "memory=20Gi")
        annotations = {**(static.metadata.annotations or {}), "kubernetes.io/config.source": "file"}
        metadata = structs.replace(static.metadata, annotations=annotations)
        scene.node.write_manifests(structs.replace(static, metadata=metadata))
        await scene.passes(30)
        assert scene.evicted("static") == []
        assert scene.node_events[0] == "EvictionThresholdMet: Attempting to reclaim memory"
        assert len(scene.node_events) == 3  # every 10 s, although readings follow quickly


async def test_a_soft_threshold_evicts_after_its_grace_period(tmp_path: Path) -> None:
    thresholds = parse_threshold_config(
        hard={},
        soft={"memory.available": "1Gi"},
        soft_grace_period={"memory.available": "1m"},
    )
    config = structs.replace(CONFIG, thresholds=thresholds, max_pod_grace_period_seconds=7)
    async with EvictionScene(tmp_path, config) as scene:
        scene.node.create(a_pod("p", "memory=7500Mi, stop=1m", grace=20))
        await scene.passes(50)
        assert scene.conditions() == ["MemoryPressure"]
        assert scene.evicted("p") == []
        await scene.passes(30)
        assert len(scene.evicted("p")) == 1
        assert scene.node.looks("p").startswith("Failed")


async def test_a_volume_above_its_size_limit_evicts_its_pod_alone(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(_with_volume(a_pod("p", "stop-exit=143"), "10Mi"))
        scene.node.create(_with_volume(a_pod("other"), "10Mi"))
        scene.disks = {"p": _uses(data=11 * MI), "other": _uses(data=10 * MI)}
        await scene.passes(10)
        pod = scene.node.pod("p")
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == ("Failed", "Evicted")
        assert pod.status.message == 'Usage of EmptyDir volume "data" exceeds the limit "10Mi". '
        assert "DisruptionTarget" not in [c.type for c in pod.status.conditions or ()]
        assert scene.node.looks("other") == RUNNING
        assert (scene.conditions(), scene.node_events) == ([], [])
        assert scene.manager.metrics.evictions.snapshot() == {("emptydirfs.limit",): 1}


async def test_a_container_above_its_storage_limit_is_evicted(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        limits = {"ephemeral-storage": "5Mi"}
        scene.node.create(with_requests(a_pod("p", "stop-exit=143"), {}, limits))
        scene.disks = {"p": _uses(logs=6 * MI)}
        await scene.passes(10)
        pod = scene.node.pod("p")
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == ("Failed", "Evicted")
        assert len(scene.evicted("p")) == 1


async def test_a_pod_is_evicted_under_pressure_beside_one_above_its_limit_that_terminates(
    tmp_path: Path,
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(_with_volume(a_pod("leaving", "stop=10m", grace=900), "10Mi"))
        scene.node.create(a_pod("big", "memory=7500Mi, stop-exit=143"))
        await scene.node.passes(4)
        scene.node.delete("leaving", grace=900)
        await scene.node.passes(2)
        scene.disks = {"leaving": _uses(data=11 * MI)}
        await scene.passes(10)
        assert scene.node.looks("big") == EVICTED
        assert len(scene.evicted("big")) == 1
        assert scene.evicted("leaving") == []
        assert scene.node.looks("leaving").startswith("Running")


async def test_files_of_finished_pods_are_removed_before_a_pod_is_evicted(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("done", "run=1s", policy="Never"))
        scene.node.create(a_pod("p"))
        await scene.passes(10)
        assert scene.node.looks("done").startswith("Succeeded")
        done = scene.node.pod("done")
        assert done is not None
        assert await scene.node.runtime.has(done.uid)

        def free(_: object) -> None:
            scene.disk_available = 50 * GI

        scene.node.runtime.before_remove = free
        scene.disk_available = GI
        await scene.passes(20)
        assert not await scene.node.runtime.has(done.uid)
        assert scene.evicted("p") == []
        assert scene.node.looks("p") == RUNNING
        assert scene.node.looks("done").startswith("Succeeded")
        assert scene.conditions() == []


async def test_files_of_an_evicted_pod_are_removed_although_the_server_is_away(
    tmp_path: Path,
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("first", "stop-exit=143"))
        scene.node.create(a_pod("second"))
        scene.disks = {"first": _uses(logs=GI), "second": _uses(logs=MI)}
        await scene.passes(4)
        first = scene.node.pod("first")
        assert first is not None

        def free(_: object) -> None:
            scene.disk_available = 50 * GI

        scene.node.runtime.before_remove = free
        scene.node.server_is_away()
        scene.disk_available = GI
        await scene.passes(60)
        assert not await scene.node.runtime.has(first.uid)
        assert scene.evicted("second") == []
        scene.node.server_is_back()
        await scene.node.passes(120)  # a failed patch is retried with a back-off
        assert scene.node.looks("first").startswith("Failed")
        assert scene.node.looks("second") == RUNNING


async def test_disk_usage_is_measured_again_before_a_pod_is_chosen(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("innocent", "stop-exit=143"))
        scene.node.create(a_pod("writer", "stop-exit=143"))
        scene.disks = {"innocent": _uses(logs=MI), "writer": _uses(logs=1)}
        await scene.passes(4)
        scene.written = {"writer": _uses(logs=40 * GI)}

        def free(_: object) -> None:
            scene.disk_available = 50 * GI

        scene.node.runtime.before_remove = free
        scene.disk_available = 9 * GI
        await scene.passes(10)
        assert scene.node.looks("writer") == EVICTED
        assert scene.node.looks("innocent") == RUNNING


async def test_a_pod_that_terminates_already_is_waited_for(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("leaving", "memory=6Gi, stop=20s", grace=30))
        scene.node.create(a_pod("staying", "memory=500Mi"))
        await scene.passes(4)
        scene.node.delete("leaving")
        await scene.passes(2)
        scene.node.create(a_pod("big", "memory=800Mi"))
        await scene.passes(40)
        assert scene.evicted("leaving") == []
        assert scene.evicted("staying") == []
        assert scene.node.looks("staying") == RUNNING


@pytest.mark.parametrize(
    ("removal", "is_next_evicted"), [(5, False), (100, True)], ids=["removed", "late"]
)
async def test_the_next_pod_waits_at_most_30_s_until_the_files_of_a_deleted_one_are_removed(
    tmp_path: Path, removal: float, *, is_next_evicted: bool
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("leaving", "stop=4s"))
        scene.node.create(a_pod("staying", "stop-exit=143"))
        scene.disks = {"leaving": _uses(logs=GI), "staying": _uses(logs=MI)}
        await scene.passes(4)

        def free(_: object) -> None:
            scene.disk_available = 50 * GI

        scene.node.runtime.before_remove = free
        scene.node.runtime.removal = removal
        scene.node.delete("leaving")
        await scene.node.passes(1)
        scene.disk_available = GI
        await scene.passes(28)
        assert scene.evicted("staying") == []
        await scene.passes(12)
        assert bool(scene.evicted("staying")) is is_next_evicted


async def test_the_next_pod_waits_until_the_status_of_one_without_a_record_is_delivered(
    tmp_path: Path,
) -> None:
    (tmp_path / "evictions").touch()  # no record can be written
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("first", "stop-exit=143"))
        scene.node.create(a_pod("second"))
        scene.disks = {"first": _uses(logs=GI), "second": _uses(logs=MI)}
        await scene.passes(4)

        def free(_: object) -> None:
            scene.disk_available = 50 * GI

        scene.node.runtime.before_remove = free
        scene.node.server_is_away()
        scene.disk_available = GI
        await scene.passes(6)
        scene.node.server_is_back()
        await scene.passes(20)
        assert scene.node.looks("first") == EVICTED
        assert scene.evicted("second") == []
        assert scene.node.looks("second") == RUNNING
        assert scene.conditions() == []


async def test_no_pod_is_evicted_before_all_sources_have_delivered(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "memory=7500Mi, stop-exit=143"))
        await scene.node.passes(2)
        scene.node.delivers = ("api",)
        await scene.node.restart()
        await scene.passes(30)
        assert scene.evicted("p") == []
        assert scene.conditions() == ["MemoryPressure"]
        scene.node.deliver("file")
        await scene.passes(10)
        assert len(scene.evicted("p")) == 1


async def test_a_restarted_agent_under_pressure_rejects_no_pod_that_runs(tmp_path: Path) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p"))
        await scene.node.passes(2)
        scene.disk_available = 9 * GI
        scene.disks = {}
        scene.node.delivers = ()
        await scene.node.restart()
        await scene.passes(10)
        assert scene.conditions() == ["DiskPressure"]
        scene.node.deliver("api")
        await scene.node.passes(1)
        assert scene.node.looks("p") == RUNNING


async def test_an_interrupted_eviction_is_completed_although_new_pods_are_rejected(
    tmp_path: Path,
) -> None:
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "stop-exit=143"))
        scene.disks = {"p": _uses(logs=GI)}
        await scene.passes(4)
        scene.node.server_is_away()
        scene.disk_available = GI
        await scene.passes(40)
        began = scene.node.pod("p")
        assert began is not None
        assert not await scene.node.runtime.has(began.uid)
        scene.node.delivers = ("file",)
        await scene.node.restart()
        await scene.passes(10)
        assert scene.conditions() == ["DiskPressure"]
        scene.node.server_is_back()
        await scene.passes(10)
        pod = scene.node.pod("p")
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == ("Failed", "Evicted")
        assert scene.evicted("p") == [f"Evicted: {pod.status.message}"]
        assert "DisruptionTarget" in [c.type for c in pod.status.conditions or ()]


@pytest.mark.parametrize("steps", range(0, 120, 3))
async def test_an_eviction_that_was_interrupted_is_completed_once(
    tmp_path: Path, steps: int
) -> None:
    """The agent ends after so many iterations of its event loop, at any await of an eviction."""
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "memory=7500Mi, stop-exit=143"))
        await scene.node.passes(4)
        await scene.read()
        for _ in range(steps):
            await asyncio.sleep(0)
        began = bool(scene.evicted("p"))
        await scene.node.restart(after=5)
        await scene.node.passes(10)
        if began:  # although no reading has been taken yet
            assert scene.node.looks("p").startswith("Failed")
        await scene.passes(30)
        pod = scene.node.pod("p")
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == ("Failed", "Evicted")
        # The event is recorded after the record, so that it is never there twice.
        assert len(scene.evicted("p")) <= 1
        shown = scene.node.shown("p")
        assert shown[-1] == EVICTED
        assert scene.node.calls("start").count("start p a-1") == 0
        assert not list((tmp_path / "evictions").glob("*"))


@pytest.mark.parametrize("steps", range(24))
async def test_an_interrupted_eviction_is_completed_although_the_pod_was_deleted(
    tmp_path: Path, steps: int
) -> None:
    """The agent ends after so many iterations; the pod is deleted before the next one starts."""
    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "memory=7500Mi, stop-exit=143"))
        await scene.node.passes(4)
        await scene.read()
        for _ in range(steps):
            await asyncio.sleep(0)
        began = any((tmp_path / "evictions").glob("*.json"))
        await scene.node.stop()
        scene.node.delete("p")
        deleted: list[Pod] = []
        scene.node.api.before_delete = deleted.append
        await scene.node.start()
        await scene.passes(40)
        (pod,) = deleted
        assert pod.status.phase == "Failed"
        if began:
            assert pod.status.reason == "Evicted"
            assert pod.status.message.startswith("The node was low on resource: memory. ")
            assert "DisruptionTarget" in [c.type for c in pod.status.conditions or ()]
        assert scene.node.pod("p") is None
        assert len(scene.evicted("p")) <= 1
        assert not list((tmp_path / "evictions").glob("*"))
