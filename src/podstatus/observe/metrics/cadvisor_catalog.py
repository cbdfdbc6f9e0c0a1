"""The metrics of cAdvisor that podstatus has, with the same names and labels, and their sources.

Upstream: metrics/prometheus.go and prometheus_machine.go, cadvisor v0.56.2, with the metric sets
and labels of pkg/kubelet/server/server.go v1.36.4.
"""

from collections.abc import Callable

from podstatus.base.pressure import Pressure, Stall
from podstatus.kube.objects.cgroup_details import CgroupDetails, DeviceIo
from podstatus.kube.objects.usage import Usage
from podstatus.node.decide.readings import DiskReading, InterfaceReading, MachineReading
from podstatus.observe.metrics.model import Metric, counter, gauge

CONTAINER_LABELS = ("container", "id", "image", "name", "namespace", "pod")
MACHINE_LABELS = ("boot_id", "machine_id", "system_uuid")

Number = float | int | None


def _counter(name: str, text: str, *labels: str) -> Metric:
    return counter(name, text, *CONTAINER_LABELS, *labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return gauge(name, text, *CONTAINER_LABELS, *labels)


def _stalled(pressure: Pressure | None) -> Number:
    return None if pressure is None else _seconds(pressure.full)


def _waiting(pressure: Pressure | None) -> Number:
    return None if pressure is None else _seconds(pressure.some)


def _seconds(stall: Stall | None) -> Number:
    return None if stall is None else stall.total_nanoseconds / 1e9


# Containers

LAST_SEEN = _gauge("container_last_seen", "Unix time in seconds at which the container was seen.")
START = _gauge(
    "container_start_time_seconds", "Start time of the container since the Unix epoch in seconds."
)
HEALTH = _gauge(
    "container_health_state",
    "Health check of the container's image: always -1, since there is none.",
)
CPU_USAGE = _counter(
    "container_cpu_usage_seconds_total",
    "Cumulative CPU time in seconds. cpu is always total.",
    "cpu",
)
MEMORY_FAILURES = _counter(
    "container_memory_failures_total",
    "Cumulative number of page faults, by type: pgfault or pgmajfault. Both scopes, container and "
    "hierarchy, include child cgroups.",
    "failure_type",
    "scope",
)
ULIMITS = _gauge(
    "container_ulimits_soft",
    "Soft limit of open files (max_open_files) of the container's first process. -1: unlimited.",
    "ulimit",
)
BLKIO = _counter(
    "container_blkio_device_usage_total",
    "Bytes read from and written to a block device, by operation.",
    "device",
    "major",
    "minor",
    "operation",
)

FROM_USAGE: tuple[tuple[Metric, Callable[[Usage], Number]], ...] = (
    (
        _gauge("container_memory_rss", "Size of anonymous memory in bytes."),
        lambda it: it.memory.rss_bytes,
    ),
    (_gauge("container_memory_swap", "Swap usage in bytes."), lambda it: it.memory.swap_bytes),
    (
        _gauge(
            "container_memory_usage_bytes",
            "Current memory usage in bytes, including page cache that can be reclaimed.",
        ),
        lambda it: it.memory.usage_bytes,
    ),
    (
        _gauge("container_memory_working_set_bytes", "Current working set in bytes."),
        lambda it: it.memory_bytes,
    ),
    (_gauge("container_processes", "Number of processes."), lambda it: it.processes),
    (_gauge("container_threads", "Number of threads."), lambda it: it.pids),
    (
        _counter(
            "container_pressure_cpu_stalled_seconds_total",
            "Time in seconds in which all tasks waited for a CPU.",
        ),
        lambda it: _stalled(it.pressure.cpu),
    ),
    (
        _counter(
            "container_pressure_cpu_waiting_seconds_total",
            "Time in seconds in which tasks waited for a CPU.",
        ),
        lambda it: _waiting(it.pressure.cpu),
    ),
    (
        _counter(
            "container_pressure_memory_stalled_seconds_total",
            "Time in seconds in which all tasks waited for memory.",
        ),
        lambda it: _stalled(it.pressure.memory),
    ),
    (
        _counter(
            "container_pressure_memory_waiting_seconds_total",
            "Time in seconds in which tasks waited for memory.",
        ),
        lambda it: _waiting(it.pressure.memory),
    ),
    (
        _counter(
            "container_pressure_io_stalled_seconds_total",
            "Time in seconds in which all tasks waited for I/O.",
        ),
        lambda it: _stalled(it.pressure.io),
    ),
    (
        _counter(
            "container_pressure_io_waiting_seconds_total",
            "Time in seconds in which tasks waited for I/O.",
        ),
        lambda it: _waiting(it.pressure.io),
    ),
)

FROM_DETAILS: tuple[tuple[Metric, Callable[[CgroupDetails], Number]], ...] = (
    (
        _counter("container_cpu_user_seconds_total", "CPU time in user mode in seconds."),
        lambda it: it.cpu.user_seconds,
    ),
    (
        _counter("container_cpu_system_seconds_total", "CPU time in kernel mode in seconds."),
        lambda it: it.cpu.system_seconds,
    ),
    (
        _counter("container_cpu_cfs_periods_total", "Number of elapsed enforcement periods."),
        lambda it: it.cpu.periods,
    ),
    (
        _counter(
            "container_cpu_cfs_throttled_periods_total",
            "Number of enforcement periods in which the CPU limit was reached.",
        ),
        lambda it: it.cpu.throttled_periods,
    ),
    (
        _counter(
            "container_cpu_cfs_throttled_seconds_total",
            "Time in seconds for which threads were throttled.",
        ),
        lambda it: it.cpu.throttled_seconds,
    ),
    (
        _counter("container_cpu_cfs_burst_periods_total", "Number of periods with a burst."),
        lambda it: it.cpu.burst_periods,
    ),
    (
        _counter("container_cpu_cfs_burst_seconds_total", "CPU time of bursts in seconds."),
        lambda it: it.cpu.burst_seconds,
    ),
    (_gauge("container_memory_cache", "Page cache in bytes."), lambda it: it.memory.cache),
    (
        _gauge("container_memory_kernel_usage", "Memory of the kernel in bytes."),
        lambda it: it.memory.kernel,
    ),
    (
        _gauge("container_memory_mapped_file", "Size of memory-mapped files in bytes."),
        lambda it: it.memory.mapped_file,
    ),
    (
        _counter("container_memory_failcnt", "Number of times the memory limit was reached."),
        lambda it: it.memory.limit_hits,
    ),
    (
        _gauge("container_memory_max_usage_bytes", "Maximum memory usage so far in bytes."),
        lambda it: it.memory.max_usage,
    ),
    (
        _gauge("container_memory_total_active_file_bytes", "Active page cache in bytes."),
        lambda it: it.memory.active_file,
    ),
    (
        _gauge("container_memory_total_inactive_file_bytes", "Inactive page cache in bytes."),
        lambda it: it.memory.inactive_file,
    ),
    (
        _gauge("container_file_descriptors", "Number of open file descriptors."),
        lambda it: it.processes.file_descriptors,
    ),
    (
        _gauge("container_sockets", "Number of open sockets."),
        lambda it: it.processes.sockets,
    ),
    (
        _gauge("container_threads_max", "Maximum number of threads; 0: unlimited."),
        lambda it: it.processes.max_threads,
    ),
    (
        _counter("container_oom_events_total", "Number of processes killed by lack of memory."),
        lambda it: it.memory.oom_kills,
    ),
)

SPECS: tuple[tuple[Metric, Callable[[CgroupDetails], Number]], ...] = (
    (
        _gauge("container_spec_cpu_period", "Enforcement period of the CPU limit in microseconds."),
        lambda it: it.cpu.period,
    ),
    (
        _gauge("container_spec_cpu_quota", "CPU limit in microseconds per enforcement period."),
        lambda it: it.cpu.quota,
    ),
    (
        _gauge("container_spec_cpu_shares", "CPU shares, from the CPU request."),
        lambda it: it.cpu.shares,
    ),
    (
        _gauge("container_spec_memory_limit_bytes", "Memory limit in bytes; 0: unlimited."),
        lambda it: it.memory.limit,
    ),
    (
        _gauge(
            "container_spec_memory_swap_limit_bytes",
            "Swap limit in bytes, with cgroup version 1 including memory; 0: unlimited.",
        ),
        lambda it: it.memory.swap_limit,
    ),
    (
        _gauge(
            "container_spec_memory_reservation_limit_bytes",
            "Memory in bytes that is protected from being reclaimed (with cgroup version 1 the "
            "soft limit); 0: none.",
        ),
        lambda it: it.memory.reservation,
    ),
)
"""Limits in force; without the time of their reading, as upstream."""

# Block devices

FROM_DEVICES: tuple[tuple[Metric, Callable[[DeviceIo], Number]], ...] = (
    (
        _counter("container_fs_reads_bytes_total", "Bytes read.", "device"),
        lambda it: it.bytes_by_operation.get("Read"),
    ),
    (_counter("container_fs_reads_total", "Number of reads.", "device"), lambda it: it.reads),
    (
        _counter("container_fs_sector_reads_total", "Number of sectors read.", "device"),
        lambda it: it.sectors_read,
    ),
    (
        _counter("container_fs_reads_merged_total", "Number of merged reads.", "device"),
        lambda it: it.reads_merged,
    ),
    (
        _counter("container_fs_read_seconds_total", "Time spent reading in seconds.", "device"),
        lambda it: it.read_seconds,
    ),
    (
        _counter("container_fs_writes_bytes_total", "Bytes written.", "device"),
        lambda it: it.bytes_by_operation.get("Write"),
    ),
    (_counter("container_fs_writes_total", "Number of writes.", "device"), lambda it: it.writes),
    (
        _counter("container_fs_sector_writes_total", "Number of sectors written.", "device"),
        lambda it: it.sectors_written,
    ),
    (
        _counter("container_fs_writes_merged_total", "Number of merged writes.", "device"),
        lambda it: it.writes_merged,
    ),
    (
        _counter("container_fs_write_seconds_total", "Time spent writing in seconds.", "device"),
        lambda it: it.write_seconds,
    ),
    (
        _gauge("container_fs_io_current", "Number of I/Os in progress.", "device"),
        lambda it: it.in_progress,
    ),
    (
        _counter("container_fs_io_time_seconds_total", "Time with I/O in seconds.", "device"),
        lambda it: it.io_seconds,
    ),
    (
        _counter(
            "container_fs_io_time_weighted_seconds_total",
            "Time with I/O in seconds, weighted by the number of I/Os in progress.",
            "device",
        ),
        lambda it: it.weighted_io_seconds,
    ),
)

FROM_FILESYSTEM: tuple[tuple[Metric, Callable[[DiskReading], Number]], ...] = (
    (
        _gauge("container_fs_inodes_free", "Number of free inodes.", "device"),
        lambda it: it.inodes_free if it.inodes else None,
    ),
    (
        _gauge("container_fs_inodes_total", "Number of inodes.", "device"),
        lambda it: it.inodes or None,
    ),
    (
        _gauge("container_fs_limit_bytes", "Size of the filesystem in bytes.", "device"),
        lambda it: it.total_bytes,
    ),
    (
        _gauge("container_fs_usage_bytes", "Used bytes of the filesystem.", "device"),
        lambda it: it.used_bytes,
    ),
)

# Network

FROM_INTERFACES: tuple[tuple[Metric, Callable[[InterfaceReading], Number]], ...] = (
    (
        _counter("container_network_receive_bytes_total", "Bytes received.", "interface"),
        lambda it: it.received_bytes,
    ),
    (
        _counter("container_network_receive_packets_total", "Packets received.", "interface"),
        lambda it: it.received_packets,
    ),
    (
        _counter(
            "container_network_receive_packets_dropped_total",
            "Received packets that were dropped.",
            "interface",
        ),
        lambda it: it.receive_dropped,
    ),
    (
        _counter("container_network_receive_errors_total", "Errors while receiving.", "interface"),
        lambda it: it.receive_errors,
    ),
    (
        _counter("container_network_transmit_bytes_total", "Bytes sent.", "interface"),
        lambda it: it.sent_bytes,
    ),
    (
        _counter("container_network_transmit_packets_total", "Packets sent.", "interface"),
        lambda it: it.sent_packets,
    ),
    (
        _counter(
            "container_network_transmit_packets_dropped_total",
            "Packets to send that were dropped.",
            "interface",
        ),
        lambda it: it.send_dropped,
    ),
    (
        _counter("container_network_transmit_errors_total", "Errors while sending.", "interface"),
        lambda it: it.send_errors,
    ),
)

# The machine

PHYSICAL_CORES = gauge(
    "machine_cpu_physical_cores", "Number of physical CPU cores.", *MACHINE_LABELS
)
SOCKETS = gauge("machine_cpu_sockets", "Number of CPU sockets.", *MACHINE_LABELS)
FROM_MACHINE: tuple[tuple[Metric, Callable[[MachineReading], Number]], ...] = (
    (
        gauge("machine_cpu_cores", "Number of logical CPU cores.", *MACHINE_LABELS),
        lambda it: it.cores,
    ),
    (
        gauge("machine_memory_bytes", "Memory of the machine in bytes.", *MACHINE_LABELS),
        lambda it: it.memory_bytes,
    ),
    (
        gauge("machine_swap_bytes", "Swap space of the machine in bytes.", *MACHINE_LABELS),
        lambda it: it.memory.swap_limit_bytes,
    ),
)
CONTAINER_ERROR = gauge(
    "container_scrape_error", "1 if containers could not be measured, 0 otherwise."
)
MACHINE_ERROR = gauge(
    "machine_scrape_error", "1 if the machine could not be measured, 0 otherwise."
)

ALL: tuple[Metric, ...] = (
    *(LAST_SEEN, START, HEALTH, CPU_USAGE, MEMORY_FAILURES, ULIMITS, BLKIO),
    *(metric for metric, _ in FROM_USAGE),
    *(metric for metric, _ in (*FROM_DETAILS, *SPECS)),
    *(metric for metric, _ in FROM_DEVICES),
    *(metric for metric, _ in FROM_FILESYSTEM),
    *(metric for metric, _ in FROM_INTERFACES),
    *(PHYSICAL_CORES, SOCKETS, *(metric for metric, _ in FROM_MACHINE)),
    *(CONTAINER_ERROR, MACHINE_ERROR),
)
