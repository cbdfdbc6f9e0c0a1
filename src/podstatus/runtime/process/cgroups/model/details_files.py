"""The interface files of a cgroup that only cAdvisor's metrics need."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from msgspec import structs

from podstatus.kube.objects.cgroup_details import CpuDetails, DeviceIo, MemoryDetails
from podstatus.runtime.cpu_and_memory_limits import MAX_SHARES, MIN_SHARES
from podstatus.runtime.process.cgroups.model.interface_files import (
    MAX_WEIGHT,
    MIN_WEIGHT,
    CgroupVersion,
    ReadFile,
    flat_keyed,
    limited,
    oom_events_file,
    parse_int,
    read_quota,
)

IO = "io"
"""Instead of a controller: the hierarchy of the controller `io`, in version 1 `blkio`."""
LEAF = "leaf"
"""Instead of a controller: the cgroup of a container's processes in the hierarchy of memory."""
V1_IO_BYTES = "blkio.throttle.io_service_bytes_recursive"
_V1_IO_COUNT = "blkio.throttle.io_serviced_recursive"

DeviceName = Callable[[int, int], str]
"""Returns the path of a block device, by major and minor number."""


def read_cpu_details(version: CgroupVersion, read: ReadFile) -> CpuDetails:
    quota, period = read_quota(version, read)
    is_v1 = version is CgroupVersion.V1
    cpu = _cpu_v1(read) if is_v1 else _cpu_v2(read)
    if quota is None:
        # The kernel counts periods only under a limit.
        cpu = CpuDetails(
            user_seconds=cpu.user_seconds, system_seconds=cpu.system_seconds, shares=cpu.shares
        )
    has_files = cpu.shares is not None
    return structs.replace(cpu, quota=quota, period=period if has_files else None)


def _cpu_v1(read: ReadFile) -> CpuDetails:
    stat = flat_keyed(read("cpu", "cpu.stat"))
    return CpuDetails(
        user_seconds=_seconds(parse_int(read("cpuacct", "cpuacct.usage_user")), 1e9),
        system_seconds=_seconds(parse_int(read("cpuacct", "cpuacct.usage_sys")), 1e9),
        periods=stat.get("nr_periods"),
        throttled_periods=stat.get("nr_throttled"),
        throttled_seconds=_seconds(stat.get("throttled_time"), 1e9),
        burst_periods=stat.get("nr_bursts"),
        burst_seconds=_seconds(stat.get("burst_time"), 1e9),
        shares=parse_int(read("cpu", "cpu.shares")),
    )


def _cpu_v2(read: ReadFile) -> CpuDetails:
    stat = flat_keyed(read("cpu", "cpu.stat"))
    weight = parse_int(read("cpu", "cpu.weight"))
    return CpuDetails(
        user_seconds=_seconds(stat.get("user_usec"), 1e6),
        system_seconds=_seconds(stat.get("system_usec"), 1e6),
        periods=stat.get("nr_periods"),
        throttled_periods=stat.get("nr_throttled"),
        throttled_seconds=_seconds(stat.get("throttled_usec"), 1e6),
        burst_periods=stat.get("nr_bursts"),
        burst_seconds=_seconds(stat.get("burst_usec"), 1e6),
        shares=None if weight is None else weight_to_shares(weight),
    )


def weight_to_shares(weight: int) -> int:
    """Convert a CPU weight of version 2 to CPU shares of version 1; several have one weight.

    Upstream: convertCPUWeightToCPULimit, cadvisor v0.56.2, container/common/helpers.go.
    """
    shares = MAX_SHARES - MIN_SHARES
    return MIN_SHARES + (weight - MIN_WEIGHT) * shares // (MAX_WEIGHT - MIN_WEIGHT)


def read_memory_details(version: CgroupVersion, read: ReadFile) -> MemoryDetails:
    return _memory_v1(read) if version is CgroupVersion.V1 else _memory_v2(read)


def _memory_v1(read: ReadFile) -> MemoryDetails:
    def number(file: str) -> int | None:
        return parse_int(read("memory", file))

    stat = flat_keyed(read("memory", "memory.stat"))
    return MemoryDetails(
        cache=stat.get("total_cache"),
        mapped_file=stat.get("total_mapped_file"),
        active_file=stat.get("total_active_file"),
        inactive_file=stat.get("total_inactive_file"),
        kernel=number("memory.kmem.usage_in_bytes"),
        max_usage=number("memory.max_usage_in_bytes"),
        limit_hits=number("memory.failcnt"),
        oom_kills=flat_keyed(read(LEAF, oom_events_file(CgroupVersion.V1))).get("oom_kill"),
        limit=_or_unlimited(number("memory.limit_in_bytes")),
        swap_limit=_or_unlimited(number("memory.memsw.limit_in_bytes")),
        reservation=_or_unlimited(number("memory.soft_limit_in_bytes")),
    )


def _memory_v2(read: ReadFile) -> MemoryDetails:
    stat = flat_keyed(read("memory", "memory.stat"))
    events = flat_keyed(read("memory", oom_events_file(CgroupVersion.V2)))
    return MemoryDetails(
        cache=stat.get("file"),
        mapped_file=stat.get("file_mapped"),
        active_file=stat.get("active_file"),
        inactive_file=stat.get("inactive_file"),
        kernel=stat.get("kernel"),
        max_usage=parse_int(read("memory", "memory.peak")),
        limit_hits=events.get("max"),
        oom_kills=events.get("oom_kill"),
        limit=_max_or_unlimited(read("memory", "memory.max")),
        swap_limit=_max_or_unlimited(read("memory", "memory.swap.max")),
        reservation=parse_int(read("memory", "memory.low")),
    )


def read_max_threads(read: ReadFile) -> int | None:
    """Return the limit of processes and threads; 0: unlimited."""
    return _max_or_unlimited(read("pids", "pids.max"))


def read_devices(version: CgroupVersion, read: ReadFile, name: DeviceName) -> tuple[DeviceIo, ...]:
    """Return the I/O by device; nothing if it is not counted."""
    if version is CgroupVersion.V1:
        return _devices_v1(read(IO, V1_IO_BYTES), read(IO, _V1_IO_COUNT), name)
    return tuple(_device_v2(line, name) for line in (read(IO, "io.stat") or "").splitlines())


def _devices_v1(
    byte_counts: str | None, counts: str | None, name: DeviceName
) -> tuple[DeviceIo, ...]:
    """Parse lines such as `254:0 Read 4096`; a last line has the total without a device."""
    volumes, operations = _by_device(byte_counts), _by_device(counts)
    return tuple(
        DeviceIo(
            device=name(*numbers),
            major=numbers[0],
            minor=numbers[1],
            bytes_by_operation=by_operation,
            reads=operations.get(numbers, {}).get("Read"),
            writes=operations.get(numbers, {}).get("Write"),
        )
        for numbers, by_operation in volumes.items()
    )


def _by_device(text: str | None) -> dict[tuple[int, int], dict[str, int]]:
    devices: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for line in (text or "").splitlines():
        match line.split():
            case [numbers, operation, value]:
                devices[_numbers(numbers)][operation] = int(value)
    return devices


def _device_v2(line: str, name: DeviceName) -> DeviceIo:
    """Parse a line such as `254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0`."""
    numbers, *fields = line.split()
    values: Mapping[str, str] = dict(field.partition("=")[::2] for field in fields)
    major, minor = _numbers(numbers)
    return DeviceIo(
        device=name(major, minor),
        major=major,
        minor=minor,
        bytes_by_operation={
            operation: int(values[key])
            for operation, key in (("Read", "rbytes"), ("Write", "wbytes"))
            if key in values
        },
        reads=parse_int(values.get("rios")),
        writes=parse_int(values.get("wios")),
    )


def _numbers(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(":")
    return int(major), int(minor)


def _seconds(count: int | None, per_second: float) -> float | None:
    return None if count is None else count / per_second


def _or_unlimited(limit: int | None) -> int | None:
    return None if limit is None else limited(limit) or 0


def _max_or_unlimited(text: str | None) -> int | None:
    """Parse a limit of version 2: `max`, or a number."""
    return 0 if text == "max" else parse_int(text)
