"""Details of a container and of the machine in which everything is known."""

from podstatus.kube.objects.cgroup_details import (
    CgroupDetails,
    CpuDetails,
    DeviceIo,
    MemoryDetails,
    PodDetails,
    ProcessDetails,
)
from podstatus.node.decide.readings import MachineDetails

DEVICE = DeviceIo(
    device="/dev/vda",
    major=254,
    minor=0,
    bytes_by_operation={"Read": 4096, "Write": 8192},
    reads=2,
    writes=3,
    sectors_read=8,
    sectors_written=16,
    reads_merged=1,
    writes_merged=4,
    read_seconds=0.5,
    write_seconds=0.25,
    in_progress=1,
    io_seconds=0.75,
    weighted_io_seconds=1.5,
)
"""A device of the machine; only its first values are known of a container."""
CONTAINER_DEVICE = DeviceIo(
    device="/dev/vda",
    major=254,
    minor=0,
    bytes_by_operation={"Read": 1024, "Write": 512, "Total": 1536},
    reads=1,
    writes=2,
)


def cgroup_details(path: str, *, at: int) -> CgroupDetails:
    return CgroupDetails(
        at=at,
        cgroup=path,
        cpu=CpuDetails(
            user_seconds=1.25,
            system_seconds=0.25,
            periods=100,
            throttled_periods=7,
            throttled_seconds=0.5,
            burst_periods=3,
            burst_seconds=0.125,
            period=100_000,
            quota=50_000,
            shares=102,
        ),
        memory=MemoryDetails(
            cache=1000,
            mapped_file=200,
            active_file=600,
            inactive_file=400,
            kernel=300,
            max_usage=9000,
            limit_hits=5,
            oom_kills=1,
            limit=10_000,
            swap_limit=0,
            reservation=0,
        ),
        processes=ProcessDetails(
            file_descriptors=11, sockets=2, max_threads=0, max_open_files=1024
        ),
        devices=(CONTAINER_DEVICE,),
    )


def pod_details(uid: str, *, at: int) -> PodDetails:
    """A pod with the container `app`."""
    path = f"/podstatus/pod{uid}"
    return PodDetails(
        pod=CgroupDetails(at=at, cgroup=path),
        containers={"app": cgroup_details(f"{path}/app-1", at=at)},
    )


def machine_details(*, at: int) -> MachineDetails:
    return MachineDetails(
        details=CgroupDetails(at=at, cgroup="/", devices=(DEVICE,)), physical_cores=1, sockets=1
    )
