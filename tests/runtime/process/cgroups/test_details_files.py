"""The interface files of cgroups that only cAdvisor's metrics need, in both versions."""

from collections.abc import Mapping

import pytest

from podstatus.kube.objects.cgroup_details import CpuDetails, DeviceIo, MemoryDetails
from podstatus.kube.objects.usage import CpuThrottling, MemoryUsage
from podstatus.runtime.process.cgroups.model.details_files import (
    read_cpu_details,
    read_devices,
    read_max_threads,
    read_memory_details,
    weight_to_shares,
)
from podstatus.runtime.process.cgroups.model.interface_files import (
    CgroupVersion,
    ReadFile,
    read_usage,
    shares_to_weight,
)

V1, V2 = CgroupVersion.V1, CgroupVersion.V2
UNLIMITED_V1 = "9223372036854771712"
FILES_V1 = {
    "cpu/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n"
    "nr_bursts 2\nburst_time 500000000",
    "cpu/cpu.cfs_quota_us": "50000",
    "cpu/cpu.cfs_period_us": "100000",
    "cpu/cpu.shares": "512",
    "cpuacct/cpuacct.usage": "4000000000",
    "cpuacct/cpuacct.usage_user": "3000000000",
    "cpuacct/cpuacct.usage_sys": "1000000000",
    "memory/memory.stat": "cache 1\nrss 2\ntotal_cache 1000\ntotal_rss 2000\n"
    "total_mapped_file 300\ntotal_active_file 600\ntotal_inactive_file 400\n"
    "total_pgfault 70\ntotal_pgmajfault 7\ntotal_swap 5\n"
    f"hierarchical_memory_limit 65536\nhierarchical_memsw_limit {UNLIMITED_V1}",
    "memory/memory.usage_in_bytes": "5000",
    "memory/memory.kmem.usage_in_bytes": "30",
    "memory/memory.max_usage_in_bytes": "9000",
    "memory/memory.failcnt": "8",
    "memory/memory.limit_in_bytes": "65536",
    "memory/memory.memsw.limit_in_bytes": UNLIMITED_V1,
    "memory/memory.soft_limit_in_bytes": UNLIMITED_V1,
    "leaf/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
    "pids/pids.max": "max",
    "io/blkio.throttle.io_service_bytes_recursive": "254:0 Read 4096\n254:0 Write 8192\n"
    "254:0 Total 12288\nTotal 12288",
    "io/blkio.throttle.io_serviced_recursive": "254:0 Read 1\n254:0 Write 2\nTotal 3",
}
FILES_V2 = {
    "cpu/cpu.stat": "usage_usec 4000000\nuser_usec 3000000\nsystem_usec 1000000\nnr_periods 10\n"
    "nr_throttled 4\nthrottled_usec 2500000\nnr_bursts 2\nburst_usec 500000",
    "cpu/cpu.max": "50000 100000",
    "cpu/cpu.weight": "20",
    "memory/memory.stat": "anon 2000\nfile 1000\nkernel 30\nfile_mapped 300\nactive_file 600\n"
    "inactive_file 400\npgfault 70\npgmajfault 7",
    "memory/memory.current": "5000",
    "memory/memory.peak": "9000",
    "memory/memory.events": "low 0\nhigh 0\nmax 8\noom 1\noom_kill 3\noom_group_kill 1",
    "memory/memory.max": "65536",
    "memory/memory.swap.current": "5",
    "memory/memory.swap.max": "max",
    "memory/memory.low": "0",
    "pids/pids.max": "max",
    "io/io.stat": "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0",
}


def reader(files: Mapping[str, str]) -> ReadFile:
    return lambda controller, file: files.get(f"{controller}/{file}")


READERS = [pytest.param(V1, reader(FILES_V1), id="v1"), pytest.param(V2, reader(FILES_V2), id="v2")]


@pytest.mark.parametrize(("version", "read"), READERS)
def test_cpu_time_throttling_and_limits(version: CgroupVersion, read: ReadFile) -> None:
    assert read_cpu_details(version, read) == CpuDetails(
        user_seconds=3.0,
        system_seconds=1.0,
        periods=10,
        throttled_periods=4,
        throttled_seconds=2.5,
        burst_periods=2,
        burst_seconds=0.5,
        period=100_000,
        quota=50_000,
        shares=512 if version is V1 else 500,  # 20 is the weight of 485 to 510 shares
    )


@pytest.mark.parametrize(("version", "read"), READERS)
def test_memory_by_kind_and_limits(version: CgroupVersion, read: ReadFile) -> None:
    assert read_memory_details(version, read) == MemoryDetails(
        cache=1000,
        mapped_file=300,
        active_file=600,
        inactive_file=400,
        kernel=30,
        max_usage=9000,
        limit_hits=8,
        oom_kills=3,
        limit=65_536,
        swap_limit=0,
        reservation=0,
    )
    assert read_max_threads(read) == 0


@pytest.mark.parametrize(("version", "read"), READERS)
def test_usage_is_that_of_all_descendants(version: CgroupVersion, read: ReadFile) -> None:
    used = read_usage(version, read)
    assert (used.cpu_seconds, used.memory_bytes) == (4.0, 4600)
    assert used.memory == MemoryUsage(
        usage_bytes=5000,
        rss_bytes=2000,
        limit_bytes=65_536,
        page_faults=70,
        major_page_faults=7,
        swap_bytes=5,
        swap_limit_bytes=None,
    )
    assert used.throttling == CpuThrottling(10, 4)


@pytest.mark.parametrize("stat", [None, "", "nr_periods 0\nnr_throttled 0", "usage_usec 5"])
@pytest.mark.parametrize("version", [V1, V2])
def test_throttling_is_unknown_without_periods(version: CgroupVersion, stat: str | None) -> None:
    files = {} if stat is None else {"cpu/cpu.stat": stat}
    assert read_usage(version, reader(files)).throttling is None


@pytest.mark.parametrize(("version", "read"), READERS)
def test_devices_have_names(version: CgroupVersion, read: ReadFile) -> None:
    total = {"Total": 12_288} if version is V1 else {}
    assert read_devices(version, read, lambda major, minor: f"/dev/{major}.{minor}") == (
        DeviceIo(
            device="/dev/254.0",
            major=254,
            minor=0,
            bytes_by_operation={"Read": 4096, "Write": 8192, **total},
            reads=1,
            writes=2,
        ),
    )


def test_without_a_cpu_limit_nothing_is_throttled() -> None:
    files = FILES_V2 | {"cpu/cpu.max": "max 100000"}
    cpu = read_cpu_details(V2, reader(files))
    assert (cpu.quota, cpu.periods, cpu.throttled_seconds, cpu.period) == (
        None,
        None,
        None,
        100_000,
    )


@pytest.mark.parametrize("version", [V1, V2])
def test_what_is_not_there_is_unknown(version: CgroupVersion) -> None:
    nothing = reader({})
    assert read_cpu_details(version, nothing) == CpuDetails()
    assert read_memory_details(version, nothing) == MemoryDetails()
    assert read_devices(version, nothing, lambda *_: "") == ()
    assert read_max_threads(nothing) is None


@pytest.mark.parametrize("weight", [1, 20, 100, 10_000])
def test_a_weight_stays_the_same_when_converted_back(weight: int) -> None:
    assert abs(shares_to_weight(weight_to_shares(weight)) - weight) <= 1
