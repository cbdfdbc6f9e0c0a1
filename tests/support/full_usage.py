"""A usage snapshot in which everything is known."""

from msgspec import structs

from podstatus.base.pressure import Pressure, Pressures, Stall
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import (
    ContainerDiskUsage,
    DiskUsage,
    MemoryUsage,
    PodDiskUsage,
    Usage,
)
from podstatus.node.decide.readings import InterfaceReading, SystemUsage, UsageSnapshot
from tests.support.web.fake_status_view import AT, a_snapshot


def _pressure(microseconds: int) -> Pressure:
    some = Stall(total_nanoseconds=microseconds * 1000, avg10=1.5, avg60=0.5, avg300=0.25)
    return Pressure(some=some, full=structs.replace(some, total_nanoseconds=1000))


PRESSURES = Pressures(cpu=_pressure(10), memory=_pressure(20), io=_pressure(30))
USED = Usage(
    at=AT - 10**9,
    cpu_seconds=1.5,
    cpu_cores=0.25,
    memory_bytes=3000,
    pids=9,
    processes=4,
    memory=MemoryUsage(
        usage_bytes=5000,
        rss_bytes=2000,
        limit_bytes=10_000,
        page_faults=70,
        major_page_faults=7,
        swap_bytes=100,
        swap_limit_bytes=400,
    ),
    pressure=PRESSURES,
)
DISK = PodDiskUsage(
    at=AT - 5 * 10**9,
    total=DiskUsage(bytes=1000, inodes=100),
    containers={
        "app": ContainerDiskUsage(
            rootfs=DiskUsage(bytes=10, inodes=1), logs=DiskUsage(bytes=20, inodes=2)
        )
    },
    volumes={"data": DiskUsage(bytes=40, inodes=4)},
)
ETH0 = InterfaceReading(
    name="eth0",
    received_bytes=1000,
    received_packets=20,
    receive_errors=3,
    receive_dropped=4,
    sent_bytes=2000,
    sent_packets=40,
    send_errors=5,
    send_dropped=6,
)


def a_full_snapshot(uid: PodUID) -> UsageSnapshot:
    """A snapshot of a node with this pod, which has a container `app` and a volume `data`."""
    snapshot = a_snapshot(uid)
    machine = structs.replace(snapshot.machine, interfaces=(ETH0,))
    return structs.replace(
        snapshot,
        machine=machine,
        node=structs.replace(USED, at=AT),
        pods={uid: USED},
        containers={uid: {"app": USED}},
        disks={uid: DISK},
        system={
            name: SystemUsage(started_at=AT - 60 * 10**9, usage=USED)
            for name in ("kubelet", "runtime", "pods")
        },
    )
