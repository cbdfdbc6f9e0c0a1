"""Values for the kernel: the kubelet's formulas, and upstream's test cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cpu_and_memory_limits import (
    CgroupLimits,
    container_limits,
    limits_to_facts,
    milli_cpu_to_quota,
    milli_cpu_to_shares,
    node_limits,
    pod_limits,
    shares_to_cpu_request,
)
from podstatus.runtime.process.cgroups.model.interface_files import (
    CgroupVersion,
    flat_keyed,
    read_resource_facts,
    read_usage,
    settings_for,
    shares_to_weight,
)
from tests.runtime.process.cgroups.cgroup_scene import pod_of, resources

MI = 2**20


@pytest.mark.parametrize(
    ("milli", "quota"),
    # TestMilliCPUToQuota, helpers_linux_test.go v1.36.4
    [
        (0, None),
        (5, 1000),
        (9, 1000),
        (10, 1000),
        (200, 20000),
        (500, 50000),
        (1000, 100000),
        (1500, 150000),
    ],
)
def test_a_limit_is_a_quota_of_each_tenth_of_a_second(milli: int, quota: int | None) -> None:
    assert milli_cpu_to_quota(milli) == quota


@pytest.mark.parametrize(
    ("milli", "shares"),
    [
        (0, 2),
        (1, 2),
        (2, 2),
        (3, 3),
        (100, 102),
        (1000, 1024),
        (256_000, 262_144),
        (10**9, 262_144),
    ],
)
def test_a_request_is_a_share(milli: int, shares: int) -> None:
    assert milli_cpu_to_shares(milli) == shares


@pytest.mark.parametrize(
    ("shares", "weight"),
    # TestGetCpuWeight, container_manager_linux_test.go v1.36.4, and some between
    [(2, 1), (262_144, 10_000), (28, 1), (29, 2), (102, 4), (1024, 39)],
)
def test_a_share_is_a_weight_in_version_2(shares: int, weight: int) -> None:
    assert shares_to_weight(shares) == weight


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (resources(), CgroupLimits(cpu_shares=2)),
        (resources("100m 64Mi"), CgroupLimits(cpu_shares=102)),
        (resources("-", "500m"), CgroupLimits(cpu_shares=512, cpu_quota=50_000)),
        (resources("0", "500m"), CgroupLimits(cpu_shares=2, cpu_quota=50_000)),
        (resources("100m", "1m"), CgroupLimits(cpu_shares=102, cpu_quota=1000)),
        (resources("", "- 128Mi"), CgroupLimits(cpu_shares=2, memory_bytes=128 * MI)),
        (resources("", "- 0"), CgroupLimits(cpu_shares=2)),
        (resources("", "- 1500m"), CgroupLimits(cpu_shares=2, memory_bytes=2)),
    ],
)
def test_what_a_container_gets(given: ResourceRequirements, expected: CgroupLimits) -> None:
    assert container_limits(given) == expected


_OWN_200 = CgroupLimits(cpu_shares=102, cpu_quota=20_000, memory_bytes=200 * MI)
_OWN_100 = CgroupLimits(cpu_shares=102, cpu_quota=10_000, memory_bytes=100 * MI)


@pytest.mark.parametrize(
    ("pod", "expected"),
    # TestResourceConfigForPod, helpers_linux_test.go v1.36.4
    [
        (pod_of(resources()), CgroupLimits(cpu_shares=2)),
        (pod_of(resources("100m 100Mi")), CgroupLimits(cpu_shares=102)),
        (pod_of(resources("100m 100Mi", "200m 200Mi")), _OWN_200),
        (
            pod_of(resources("100m 100Mi", "200m 200Mi"), resources("100m 100Mi")),
            CgroupLimits(cpu_shares=204),
        ),
        (pod_of(resources("100m 100Mi", "100m 100Mi")), _OWN_100),
        (
            pod_of(
                resources("100m 100m", "100m 100Mi"),
                resources("100m 100m"),
                init=(resources("100m 100m", "100m 100Mi"), resources("100m 100m")),
            ),
            CgroupLimits(cpu_shares=204),
        ),
        (pod_of(resources(), own=resources()), CgroupLimits(cpu_shares=2)),
        (pod_of(resources(), own=resources("100m 100Mi")), CgroupLimits(cpu_shares=102)),
        (pod_of(resources("10m 50Mi"), own=resources("100m 100Mi")), CgroupLimits(cpu_shares=102)),
        (pod_of(resources(), own=resources("100m 100Mi", "200m 200Mi")), _OWN_200),
        (
            pod_of(resources("10m 50Mi", "50m 100Mi"), own=resources("100m 100Mi", "200m 200Mi")),
            _OWN_200,
        ),
        (
            pod_of(resources("200m 200Mi", "200m 200Mi"), own=resources("200m 300Mi")),
            CgroupLimits(cpu_shares=204, cpu_quota=20_000, memory_bytes=200 * MI),
        ),
        (pod_of(resources(), own=resources("100m 100Mi", "100m 100Mi")), _OWN_100),
        (
            pod_of(
                resources("10m 50Mi", "50m 50Mi"),
                init=(resources("10m 50Mi", "50m 50Mi"),),
                own=resources("100m 100Mi", "100m 100Mi"),
            ),
            _OWN_100,
        ),
        # An init container without a limit may use anything, and so may the pod.
        (
            pod_of(resources("100m 1Mi", "100m 1Mi"), init=(resources("1m"),)),
            CgroupLimits(cpu_shares=102),
        ),
    ],
)
def test_what_a_pod_gets(pod: Pod, expected: CgroupLimits) -> None:
    assert pod_limits(pod) == expected


def test_all_pods_together_count_as_the_machine() -> None:
    assert node_limits(4) == CgroupLimits(cpu_shares=4096)


@pytest.mark.parametrize(
    ("version", "limits", "container", "expected"),
    [
        (CgroupVersion.V1, CgroupLimits(cpu_shares=2), True, ["cpu.shares=2"]),
        (
            CgroupVersion.V1,
            CgroupLimits(cpu_shares=102, cpu_quota=1000, memory_bytes=MI),
            True,
            [
                "cpu.shares=102",
                "cpu.cfs_period_us=100000 !",
                "cpu.cfs_quota_us=1000 !",
                "memory.limit_in_bytes=1048576 !",
                "memory.memsw.limit_in_bytes=1048576",
            ],
        ),
        (CgroupVersion.V2, CgroupLimits(cpu_shares=2), False, ["cpu.weight=1"]),
        (
            CgroupVersion.V2,
            CgroupLimits(cpu_shares=102, cpu_quota=1000, memory_bytes=MI),
            True,
            [
                "cpu.weight=4",
                "cpu.max=1000 100000 !",
                "memory.max=1048576 !",
                "memory.swap.max=0",
                "memory.oom.group=1",
            ],
        ),
        (
            CgroupVersion.V2,
            CgroupLimits(cpu_shares=102, memory_bytes=MI),
            False,
            ["cpu.weight=4", "memory.max=1048576 !"],
        ),
    ],
)
def test_what_is_written(
    version: CgroupVersion, limits: CgroupLimits, container: bool, expected: list[str]
) -> None:
    settings = settings_for(version, limits, container=container)
    assert [f"{s.file}={s.text}" + " !" * s.required for s in settings] == expected
    assert all(s.file.startswith(f"{s.controller}.") for s in settings)


@pytest.mark.parametrize(
    ("limits", "cpu_request", "cpu_limit", "memory_limit"),
    [
        (CgroupLimits(cpu_shares=2), "2m", None, None),
        (CgroupLimits(cpu_shares=1024, cpu_quota=200_000), "1", "2", None),
        (CgroupLimits(cpu_shares=102, memory_bytes=100 * MI), "100m", None, "100Mi"),
        (CgroupLimits(cpu_shares=102, memory_bytes=100_000_000), "100m", None, "100000000"),
        (CgroupLimits(cpu_shares=2, memory_bytes=500), "2m", None, "500"),
    ],
)
def test_what_is_reported(
    limits: CgroupLimits, cpu_request: str, cpu_limit: str | None, memory_limit: str | None
) -> None:
    facts = limits_to_facts(limits)
    assert facts.cpu_request == cpu_request
    assert facts.cpu_limit == cpu_limit
    assert facts.memory_limit == memory_limit
    assert facts.memory_limit is None or facts.memory_limit.canonical == memory_limit


@given(st.integers(2, 256_000))
def test_a_request_is_read_back_as_it_was(milli: int) -> None:
    assert shares_to_cpu_request(milli_cpu_to_shares(milli)).milli_value == milli


def _facts(
    version: CgroupVersion, files: dict[str, str], requested: CgroupLimits | None = None
) -> ResourceFacts:
    return read_resource_facts(version, lambda _controller, file: files.get(file), requested)


_V1 = {"cpu.shares": "102", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}
_NONE_V1 = {"memory.limit_in_bytes": "9223372036854771712"}


def test_no_limit_is_reported_where_there_is_none() -> None:
    assert _facts(CgroupVersion.V1, _V1 | _NONE_V1) == ResourceFacts(cpu_request=Quantity("100m"))
    free = {"cpu.weight": "4", "cpu.max": "max 100000", "memory.max": "max"}
    assert _facts(CgroupVersion.V2, free) == ResourceFacts()
    assert _facts(CgroupVersion.V2, {}) == ResourceFacts()


def test_what_was_asked_for_is_reported_in_its_words_while_it_holds() -> None:
    requested = CgroupLimits(cpu_shares=102, cpu_quota=50_000, memory_bytes=100_000_000)
    files = {"cpu.weight": "4", "cpu.max": "50000 100000", "memory.max": "99999744"}
    assert _facts(CgroupVersion.V2, files, requested) == limits_to_facts(requested)
    v1 = _V1 | {"cpu.cfs_quota_us": "50000", "memory.limit_in_bytes": "99999744"}
    assert _facts(CgroupVersion.V1, v1, requested) == limits_to_facts(requested)


def test_a_foreign_change_is_reported_as_it_is() -> None:
    requested = CgroupLimits(cpu_shares=102, cpu_quota=50_000, memory_bytes=100 * MI)
    files = {"cpu.weight": "9", "cpu.max": "20000 50000", "memory.max": str(64 * MI)}
    assert _facts(CgroupVersion.V2, files, requested) == ResourceFacts(
        cpu_limit=Quantity("400m"), memory_limit=Quantity("64Mi")
    )


def test_usage_does_not_count_inactive_files() -> None:
    v1 = {
        "cpuacct.usage": "1500000000",
        "memory.usage_in_bytes": "1000",
        "memory.stat": "inactive_file 1\ntotal_inactive_file 300",
        "pids.current": "7",
    }
    v2 = {
        "cpu.stat": "usage_usec 1500000\nuser_usec 7",
        "memory.current": "1000",
        "memory.stat": "anon 700\ninactive_file 300",
        "pids.current": "7",
    }
    for version, files in ((CgroupVersion.V1, v1), (CgroupVersion.V2, v2)):
        used = read_usage(version, lambda _controller, file, files=files: files.get(file))  # type: ignore[misc]
        assert (used.cpu_seconds, used.memory_bytes, used.pids) == (1.5, 700, 7)
    nothing = read_usage(CgroupVersion.V2, lambda *_: None)
    assert (nothing.cpu_seconds, nothing.memory_bytes, nothing.pids) == (None, None, None)


def test_a_field_is_found_by_its_whole_name() -> None:
    events = "oom 3\noom_kill 1\noom_group_kill 0"
    assert flat_keyed(events).get("oom_kill") == 1
    assert flat_keyed(events).get("kill") is None
    assert flat_keyed(None).get("oom_kill") is None
