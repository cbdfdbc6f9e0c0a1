"""Every field of the kubelet's summary is served, or documented as never present.

summary-fields.txt has the JSON paths of stats/v1alpha1.Summary of k8s.io/kubelet v0.36.4, listed by
reflection over its Go types.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import structs

from podstatus.base.pressure import Pressures
from podstatus.kube.objects.usage import DiskUsage, MemoryUsage, PodDiskUsage
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.node.machine.reader import DiskReader
from podstatus.node.machine.usage import NodeUsage
from podstatus.runtime.port import RuntimePod
from podstatus.testing.clock import FakeClock
from podstatus.web.kubelet.stats import stats_summary
from tests.support.full_usage import DISK, USED, a_full_snapshot
from tests.support.web.fake_runtime import FakePods
from tests.support.web.fake_status_view import FakeMachine
from tests.support.web.node_server import app_pod

FIELDS = (Path(__file__).parent / "summary-fields.txt").read_text().split()
PAGE = Path(__file__).parents[3] / "docs/reference/http/stats-summary.md"


def running() -> RuntimePod:
    (pod,) = FakePods(app_pod()).running_pods()
    return pod


def full() -> UsageSnapshot:
    return a_full_snapshot(running().uid)


def summary(snapshot: UsageSnapshot, **query: list[str]) -> Any:
    return json.loads(stats_summary("node-1", FakeMachine(snapshot), [running()], query))


def leaves(value: object, path: str = "") -> Iterator[str]:
    """The paths of all values, as in summary-fields.txt."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, f"{path}[]")
    else:
        yield path


def documented() -> set[str]:
    """The fields that are documented as never present, and all below them."""
    table = PAGE.read_text().partition("<!-- checked by")[2].partition("<!-- end -->")[0]
    prefixes = re.findall(r"^\| `([^`]+)` \|", table, flags=re.MULTILINE)
    below = {
        name: {it for it in FIELDS if re.match(re.escape(name) + r"($|[.\[])", it)}
        for name in prefixes
    }
    assert all(below.values()), "a documented field does not exist"
    return set().union(*below.values())


def test_every_field_is_served_or_documented() -> None:
    served = set(leaves(summary(full())))
    assert served <= set(FIELDS), "a field that the kubelet does not have"
    assert served & documented() == set()
    assert served | documented() == set(FIELDS)


def test_values_are_those_that_were_measured() -> None:
    (pod,) = summary(full())["pods"]
    (app,) = pod["containers"]
    at = "2026-11-15T11:59:59Z"
    some = {"total": 10_000, "avg10": 1.5, "avg60": 0.5, "avg300": 0.25}
    assert app["cpu"] == {
        "time": at,
        "usageNanoCores": 250_000_000,
        "usageCoreNanoSeconds": 1_500_000_000,
        "psi": {"full": some | {"total": 1000}, "some": some},
    }
    assert app["memory"] == {
        "time": at,
        "availableBytes": 7000,
        "usageBytes": 5000,
        "workingSetBytes": 3000,
        "rssBytes": 2000,
        "pageFaults": 70,
        "majorPageFaults": 7,
        "psi": {"full": some | {"total": 1000}, "some": some | {"total": 20_000}},
    }
    assert app["io"]["psi"]["some"]["total"] == 30_000
    assert app["swap"] == {"time": at, "swapAvailableBytes": 300, "swapUsageBytes": 100}
    assert (pod["cpu"], pod["memory"], pod["swap"]) == (app["cpu"], app["memory"], app["swap"])
    assert pod["process_stats"] == {"process_count": 4}


def test_disk_usage_is_a_share_of_the_nodes_filesystem() -> None:
    document = summary(full())
    (pod,) = document["pods"]
    (app,) = pod["containers"]
    filesystem = {
        "time": "2026-11-15T11:59:55Z",
        "availableBytes": 500,
        "capacityBytes": 1000,
        "inodesFree": 4,
        "inodes": 10,
    }
    assert app["rootfs"] == filesystem | {"usedBytes": 10, "inodesUsed": 1}
    assert app["logs"] == filesystem | {"usedBytes": 20, "inodesUsed": 2}
    data = filesystem | {"name": "data", "usedBytes": 40, "inodesUsed": 4}
    assert pod["volume"] == [data]
    # Without the records of the runtime, which are in DISK.total.
    assert pod["ephemeral-storage"] == filesystem | {"usedBytes": 70, "inodesUsed": 7}
    assert document["node"]["runtime"]["containerFs"]["usedBytes"] == 10


def test_a_lower_bound_is_not_shown_as_usage() -> None:
    volumes = {"data": DiskUsage(bytes=40, inodes=4, is_complete=False)}
    snapshot = structs.replace(full(), disks={running().uid: _with_volumes(volumes)})
    (pod,) = summary(snapshot)["pods"]
    assert {"usedBytes", "inodesUsed"} & {*pod["volume"][0], *pod["ephemeral-storage"]} == set()
    assert pod["containers"][0]["logs"]["usedBytes"] == 20


def _with_volumes(volumes: dict[str, DiskUsage]) -> PodDiskUsage:
    return structs.replace(DISK, volumes=volumes)


def test_the_default_interface_is_also_at_the_top() -> None:
    network = summary(full())["node"]["network"]
    eth0 = {"name": "eth0", "rxBytes": 1000, "rxErrors": 3, "txBytes": 2000, "txErrors": 5}
    assert network == {"time": "2026-11-15T12:00:00Z", **eth0, "interfaces": [eth0]}
    snapshot = full()
    other = structs.replace(snapshot.machine.interfaces[0], name="ens3")
    snapshot = structs.replace(
        snapshot, machine=structs.replace(snapshot.machine, interfaces=(other,))
    )
    network = summary(snapshot)["node"]["network"]
    assert (network["name"], "rxBytes" in network) == ("", False)


def test_system_containers_say_since_when() -> None:
    systems = summary(full())["node"]["systemContainers"]
    assert [it["name"] for it in systems] == ["kubelet", "runtime", "pods"]
    assert {it["startTime"] for it in systems} == {"2026-11-15T11:59:00Z"}


def test_only_cpu_and_memory_has_swap_and_system_containers_as_upstream() -> None:
    document = summary(full(), only_cpu_and_memory=["true"])
    node, (pod,) = document["node"], document["pods"]
    used = {"cpu", "memory", "swap"}
    assert set(node) == {"nodeName", "startTime", "systemContainers"} | used
    assert set(node["systemContainers"][0]) == {"name", "startTime"} | used
    assert set(pod) == {"podRef", "startTime", "containers"} | used
    assert set(pod["containers"][0]) == {"name", "startTime"} | used


def test_unknown_values_are_omitted() -> None:
    bare = structs.replace(USED, memory=MemoryUsage(), pressure=Pressures(), processes=None)
    snapshot = full()
    uid = running().uid
    snapshot = structs.replace(
        snapshot, pods={uid: bare}, containers={uid: {"app": bare}}, disks={}
    )
    (pod,) = summary(snapshot)["pods"]
    assert set(pod) == {"podRef", "startTime", "containers", "cpu", "memory"}
    assert set(pod["containers"][0]) == {"name", "startTime", "cpu", "memory"}
    assert set(pod["memory"]) == {"time", "workingSetBytes"}


def test_memory_beyond_the_limit_leaves_nothing() -> None:
    over = structs.replace(USED, memory_bytes=20_000)
    snapshot = structs.replace(full(), pods={running().uid: over})
    assert summary(snapshot)["pods"][0]["memory"]["availableBytes"] == 0


async def test_what_kubernetes_own_tests_dereference_is_there(tmp_path: Path) -> None:
    """Upstream: computeContainerResourceUsage, test/e2e/framework/kubelet/stats.go v1.36.4."""
    usage = NodeUsage(DiskReader(tmp_path), clock=FakeClock())
    measured = FakeMachine(await usage.sample_once())
    node = json.loads(stats_summary("node-1", measured, [], {}))["node"]
    systems = {it["name"]: it for it in node["systemContainers"]}
    for part in (node, systems["kubelet"]):
        assert part["cpu"]["time"]
        assert part["cpu"]["usageCoreNanoSeconds"] > 0
        assert {"usageBytes", "workingSetBytes", "rssBytes"} <= set(part["memory"])
        assert part["memory"]["workingSetBytes"] <= part["memory"]["usageBytes"]
