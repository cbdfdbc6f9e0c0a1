"""What eviction knows of the node and its pods."""

from msgspec import structs

from podstatus.eviction.usage_summary import usage_summary
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import ContainerDiskUsage, DiskUsage, PodDiskUsage, Usage
from podstatus.node.decide.readings import MachineReading, UsageSnapshot
from tests.node.scene import DISK, GI, MACHINE

A, B = PodUID("a"), PodUID("b")


def _snapshot(machine: MachineReading = MACHINE) -> UsageSnapshot:
    disk = PodDiskUsage(
        at=1,
        total=DiskUsage(bytes=1000, inodes=50),
        containers={
            "app": ContainerDiskUsage(
                rootfs=DiskUsage(bytes=10, inodes=1), logs=DiskUsage(bytes=20, inodes=2)
            )
        },
        volumes={"data": DiskUsage(bytes=300, inodes=3)},
    )
    return UsageSnapshot(
        at=5,
        monotonic=7,
        machine=machine,
        node=Usage(at=5),
        pods={A: Usage(at=5, memory_bytes=GI, pids=3), B: Usage(at=5, memory_bytes=2 * GI)},
        containers={A: {"app": Usage(at=5, memory_bytes=GI - 1)}},
        disks={A: disk},
    )


def test_without_images_all_filesystems_are_nodefs() -> None:
    node = usage_summary(_snapshot(), None).node
    assert node.nodefs is not None
    assert node.imagefs == node.containerfs == node.nodefs
    assert (node.nodefs.available_bytes, node.nodefs.capacity_bytes) == (50 * GI, 100 * GI)
    assert (node.nodefs.inodes_free, node.nodefs.inodes) == (900_000, 1_000_000)
    assert node.nodefs.at == 7


def test_the_memory_of_all_pods_is_measured_against_their_limit() -> None:
    node = usage_summary(_snapshot(), 7 * GI).node
    assert node.memory is not None
    assert (node.memory.available_bytes, node.memory.working_set_bytes) == (6 * GI, 2 * GI)
    assert node.pods_memory is not None
    assert node.pods_memory.available_bytes == 4 * GI
    assert usage_summary(_snapshot(), None).node.pods_memory is None


def test_what_is_unknown_stays_unknown() -> None:
    machine = structs.replace(MACHINE, disk=None, max_pids=None)
    node = usage_summary(_snapshot(machine), None).node
    assert node.nodefs is None
    assert node.pids is not None
    assert node.pids.max_pid is None
    without_inodes = structs.replace(MACHINE, disk=structs.replace(DISK, inodes=0, inodes_free=0))
    nodefs = usage_summary(_snapshot(without_inodes), None).node.nodefs
    assert nodefs is not None
    assert (nodefs.inodes, nodefs.inodes_free) == (None, None)
    assert usage_summary(_snapshot(), None).pods[B].ephemeral_storage_bytes is None


def test_a_pod_uses_what_its_containers_and_volumes_use() -> None:
    pod = usage_summary(_snapshot(), None).pods[A]
    assert (pod.memory_working_set_bytes, pod.process_count) == (GI, 3)
    assert pod.ephemeral_storage_bytes == 330
    (app,) = pod.containers
    assert app.logs is not None
    assert (app.name, app.memory_working_set_bytes, app.logs.used_bytes) == ("app", GI - 1, 20)
    assert pod.volumes["data"].inodes_used == 3
