"""The page of cAdvisor: whose series there are, and their values."""

from collections.abc import Iterable, Iterator, Mapping

import pytest
from msgspec import structs

from podstatus.kube.objects.cgroup_details import CgroupDetails, PodDetails
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.objects.usage import Usage
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.readings import MachineDetails
from podstatus.observe.metrics.cadvisor_collector import CadvisorState, cadvisor_metrics
from podstatus.observe.metrics.cadvisor_page import CadvisorPage, CadvisorSources
from podstatus.observe.metrics.model import Samples, TimestampedValue, flatten
from podstatus.runtime.port import RuntimePod
from podstatus.testing.clock import FakeClock
from tests.support.full_details import machine_details, pod_details
from tests.support.full_usage import a_full_snapshot
from tests.support.web.fake_status_view import AT

UID = PodUID("uid-1")
INFO = NodeSystemInfo(machine_id="m", system_uuid="s", boot_id="b")
APP = ContainerFacts(
    name="app",
    state=ContainerRunState.RUNNING,
    id="process://app-1",
    image="nginx",
    started_at=Time.from_unix_nanos(AT - 60 * 10**9),
)
POD = RuntimePod(uid=UID, namespace="ns", name="web", facts=PodFacts(containers=(APP,)))
CONTAINER = "app,/podstatus/poduid-1/app-1,nginx,app-1,ns,web"
WHOLE_POD = ",/podstatus/poduid-1,,,ns,web"
MACHINE = ",/,,,,"


def state(**changes: object) -> CadvisorState:
    snapshot = a_full_snapshot(UID)
    disk = structs.replace(snapshot.machine.disk, device="/dev/vda")  # type: ignore[type-var]
    snapshot = structs.replace(snapshot, machine=structs.replace(snapshot.machine, disk=disk))
    built = CadvisorState(
        now=AT + 10**9,
        snapshot=snapshot,
        running={UID: POD},
        details={UID: pod_details(UID, at=AT)},
        machine=machine_details(at=AT),
        info=INFO,
    )
    return structs.replace(built, **changes)


def series(samples: Iterable[Samples]) -> dict[str, float]:
    """Values by name and label values."""
    return dict(_series(samples))


def _series(samples: Iterable[Samples]) -> Iterator[tuple[str, float]]:
    for it in samples:
        for labels, value in it.values.items():
            number = value.value if isinstance(value, TimestampedValue) else value
            assert isinstance(number, float | int)
            yield f"{it.metric.name}{{{','.join(labels)}}}", number


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("container_cpu_usage_seconds_total", {"total": 1.5}),
        ("container_cpu_user_seconds_total", 1.25),
        ("container_cpu_cfs_throttled_periods_total", 7),
        ("container_memory_usage_bytes", 5000),
        ("container_memory_working_set_bytes", 3000),
        ("container_memory_rss", 2000),
        ("container_memory_cache", 1000),
        ("container_memory_failures_total", {"pgfault,container": 70, "pgmajfault,hierarchy": 7}),
        ("container_oom_events_total", 1),
        ("container_processes", 4),
        ("container_threads", 9),
        ("container_sockets", 2),
        ("container_ulimits_soft", {"max_open_files": 1024}),
        ("container_spec_memory_limit_bytes", 10_000),
        ("container_spec_cpu_quota", 50_000),
        ("container_pressure_io_waiting_seconds_total", 30e-6),
        ("container_pressure_cpu_stalled_seconds_total", 1e-6),
        ("container_fs_writes_bytes_total", {"/dev/vda": 512}),
        ("container_blkio_device_usage_total", {"/dev/vda,254,0,Total": 1536}),
        ("container_start_time_seconds", AT / 1e9 - 60),
        ("container_last_seen", AT / 1e9 + 1),
        ("container_health_state", -1),
    ],
)
def test_a_container_has_the_values_that_were_read(
    name: str, value: float | Mapping[str, float]
) -> None:
    found = series(cadvisor_metrics(state()))
    by_label = value if isinstance(value, Mapping) else {"": value}
    for extra, expected in by_label.items():
        labels = f"{CONTAINER},{extra}" if extra else CONTAINER
        assert found[f"{name}{{{labels}}}"] == pytest.approx(expected)


def test_pods_and_the_machine_have_series_too() -> None:
    found = series(cadvisor_metrics(state()))
    assert found[f"container_memory_rss{{{WHOLE_POD}}}"] == 2000
    assert found[f"container_memory_rss{{{MACHINE}}}"] == 2000
    assert found[f"container_fs_sector_reads_total{{{MACHINE},/dev/vda}}"] == 8
    assert found[f"container_fs_usage_bytes{{{MACHINE},/dev/vda}}"] == 400
    assert found[f"container_network_receive_bytes_total{{{MACHINE},eth0}}"] == 1000
    assert found["machine_cpu_sockets{b,m,s}"] == 1
    assert found["machine_memory_bytes{b,m,s}"] == 2**30


def test_only_the_machine_has_network_and_filesystem() -> None:
    names = [name for name in series(cadvisor_metrics(state())) if "app" in name]
    assert [it for it in names if "network" in it or "fs_usage" in it] == []


def test_samples_have_the_time_of_their_reading() -> None:
    samples = {it.metric.name: it for it in cadvisor_metrics(state())}
    (rss,) = {
        value.timestamp
        for labels, value in samples["container_memory_rss"].values.items()
        if isinstance(value, TimestampedValue) and labels[0] == "app"
    }
    assert rss == AT / 1e9 - 1  # when usage was measured
    cache = samples["container_memory_cache"].values[tuple(CONTAINER.split(","))]
    assert cache == TimestampedValue(1000, AT / 1e9)


def test_what_is_not_known_is_omitted_and_never_zero() -> None:
    snapshot = a_full_snapshot(UID)
    bare = Usage(at=AT, cpu_seconds=1.0)
    snapshot = structs.replace(
        snapshot, node=bare, pods={UID: bare}, containers={UID: {"app": bare}}
    )
    machine = MachineDetails(details=CgroupDetails(at=AT, cgroup="/"))
    found = series(cadvisor_metrics(state(snapshot=snapshot, details={}, machine=machine)))
    containers = {name.partition("{")[0] for name in found if "app" in name}
    assert containers == {
        "container_last_seen",
        "container_start_time_seconds",
        "container_health_state",
        "container_cpu_usage_seconds_total",
    }
    # Without a cgroup, the id is where it would be.
    assert "container_last_seen{app,/poduid-1/app-1,nginx,app-1,ns,web}" in found


def test_before_the_first_reading_there_is_only_an_error() -> None:
    assert series(cadvisor_metrics(state(snapshot=None))) == {
        "container_scrape_error{}": 1,
        "machine_scrape_error{}": 1,
    }


def test_pods_of_one_name_do_not_share_a_series() -> None:
    other = structs.replace(POD, uid=PodUID("uid-2"))
    found = series(cadvisor_metrics(state(running={UID: POD, other.uid: other})))
    assert len([name for name in found if name.startswith("container_last_seen{app,")]) == 2


async def test_details_are_read_once_in_ten_seconds() -> None:
    clock, reads = FakeClock(), list[int]()

    def read() -> dict[PodUID, PodDetails]:
        reads.append(clock.now())
        return {UID: pod_details(UID, at=clock.now())}

    snapshot = a_full_snapshot(UID)
    sources = CadvisorSources(
        snapshot=lambda: snapshot,
        running=lambda: {UID: POD},
        pods=lambda: read,
        machine=lambda at: machine_details(at=at),
        info=INFO,
    )
    page = CadvisorPage(sources, clock=clock)
    for _ in range(3):
        assert list(flatten(page.collect()))
        await clock.advance(4)
    assert len(reads) == 1
    assert list(flatten(page.collect()))
    assert len(reads) == 2
