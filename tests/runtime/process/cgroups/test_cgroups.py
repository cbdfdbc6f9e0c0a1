"""Cgroups are created, limited, read and removed; in a fake of version 2."""

from pathlib import Path

import pytest

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.process.cgroups.pod_cgroups import (
    CgroupInUseError,
    LimitError,
    unavailable_cgroups,
)
from tests.runtime.process.cgroups.cgroup_scene import Machine, pod_of, resources

UID, OTHER = PodUID("uid-1"), PodUID("uid-2")
FREE = ResourceRequirements()
LIMITED = resources("100m", "500m 100M")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_limits_are_written_and_read_back(machine: Machine) -> None:
    machine.cgroups.create(UID, "c1", LIMITED)
    folder = "poduid-1/c1/"
    assert machine.text(folder + "cpu.weight") == "4"
    assert machine.text(folder + "cpu.max") == "50000 100000"
    assert machine.text(folder + "memory.max") == "100000000"
    assert machine.text(folder + "memory.swap.max") == "0"
    assert machine.text(folder + "memory.oom.group") == "1"
    assert machine.text(folder + "pids.max") == "max"
    assert machine.cgroups.actuated_resources(UID, "c1", LIMITED) == ResourceFacts(
        cpu_request=Quantity("100m"),
        cpu_limit=Quantity("500m"),
        memory_limit=Quantity("100000000"),
    )
    assert machine.cgroups.actuated_resources(UID, "c2") is None


def test_a_container_without_limits_has_a_cgroup_too(machine: Machine) -> None:
    place = machine.cgroups.create(UID, "c1", FREE)
    assert Path(place.oom_events).is_file()
    assert machine.cgroups.actuated_resources(UID, "c1") == ResourceFacts()
    assert machine.text("poduid-1/c1/memory.max") == "max"


def test_made_again_it_is_the_same(machine: Machine) -> None:
    first = machine.cgroups.create(UID, "c1", LIMITED)
    assert machine.cgroups.create(UID, "c1", LIMITED) == first


def test_a_pod_has_the_limits_of_its_containers_together(machine: Machine) -> None:
    each = resources("100m 1Mi", "200m 2Mi")
    machine.cgroups.create_pod(pod_of(each, each))
    assert machine.text("podu/cpu.max") == "40000 100000"
    assert machine.text("podu/memory.max") == str(4 * 2**20)
    assert machine.text("podu/memory.oom.group") == "0"


def test_a_failing_limit_is_reported_and_the_rest_is_set(machine: Machine) -> None:
    machine.kernel.refused = {"memory.max", "cpu.weight"}
    with pytest.raises(LimitError) as caught:
        machine.cgroups.create(UID, "c1", LIMITED)
    assert caught.value.reason == (
        "memory is not limited: memory.max cannot be set to 100000000: Permission denied"
    )
    assert caught.value.paths.procs == (f"{machine.base}/poduid-1/c1/inside/cgroup.procs",)
    assert machine.text("poduid-1/c1/cpu.max") == "50000 100000"
    machine.cgroups.create(UID, "c2", resources("100m", "500m"))


def test_a_controller_that_is_missing_matters_to_those_who_need_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "memory pids")
    place = machine.cgroups.create(UID, "c1", resources("100m 1Mi", "- 1Mi"))
    assert place.procs
    with pytest.raises(LimitError, match=r"cpu is not limited: controller cpu is not available"):
        machine.cgroups.create(UID, "c2", LIMITED)
    used = machine.cgroups.usage(UID, "c1")
    assert used is not None
    assert used.cpu_seconds == 0


def test_only_limits_of_the_pod_itself_are_missed_for_a_pod(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "memory pids")
    machine.cgroups.create_pod(pod_of(resources("1", "1")))
    with pytest.raises(LimitError, match="cpu is not limited"):
        machine.cgroups.create_pod(pod_of(FREE, own=resources("1", "1")))


def test_where_there_are_no_cgroups_only_limits_are_missed() -> None:
    nothing = unavailable_cgroups("this is a mouse")
    assert nothing.create(UID, "c1", resources("1 1Gi")).procs == ()
    with pytest.raises(LimitError, match="cpu is not limited: this is a mouse; memory is"):
        nothing.create(UID, "c1", LIMITED)
    nothing.create_pod(pod_of(LIMITED))
    assert nothing.actuated_resources(UID, "c1") is None
    assert nothing.usage(UID, "c1") is None
    nothing.remove(UID, "c1")
    nothing.remove_pod(UID)
    nothing.retain_only([])
    nothing.close()


@pytest.mark.parametrize("bad", ["../../etc", "", "a/b", ".", "..", "x" * 300, "a\0b", "a\nb"])
def test_a_name_never_leads_elsewhere(machine: Machine, bad: str) -> None:
    before = sorted(machine.base.parent.rglob("*"))
    assert machine.cgroups.create(UID, bad, FREE).procs == ()
    with pytest.raises(LimitError, match="not a valid cgroup name"):
        machine.cgroups.create(UID, bad, LIMITED)
    assert machine.cgroups.actuated_resources(UID, bad) is None
    machine.cgroups.remove(UID, bad)
    assert sorted(machine.base.parent.rglob("*")) == before


def test_what_is_left_is_killed_and_all_is_removed(machine: Machine) -> None:
    machine.cgroups.create(UID, "c1", FREE)
    machine.cgroups.create(UID, "c2", FREE)
    inner = machine.base / "poduid-1/c1/made-by-the-container"
    machine.kernel.create(inner)
    machine.kernel.put(inner, 4711)
    machine.cgroups.remove(UID, "c1")
    assert machine.kernel.child_names(machine.base / "poduid-1") == ["c2"]
    machine.cgroups.remove_pod(UID)
    machine.cgroups.remove_pod(UID)
    machine.cgroups.remove(UID, "c1")
    machine.cgroups.close()
    assert machine.kernel.child_names(machine.base.parent) == []


def test_a_process_that_cannot_be_killed_is_reported(machine: Machine) -> None:
    machine.cgroups.create(UID, "c1", FREE)
    machine.kernel.put(machine.base / "poduid-1/c1", 4711)
    machine.kernel.immortal = {4711}
    with pytest.raises(CgroupInUseError, match=r"cannot remove cgroup .*/c1: .*busy.*\[4711\]"):
        machine.cgroups.remove(UID, "c1")
    assert 1 < machine.slept < 3


def test_a_sweep_leaves_only_what_is_to_be_kept(machine: Machine) -> None:
    for uid in (UID, OTHER, PodUID("uid-3")):
        machine.cgroups.create(uid, "c1", FREE)
    machine.kernel.put(machine.base / "poduid-1/c1", 4711)
    machine.kernel.put(machine.base / "poduid-2/c1", 4712)
    machine.kernel.immortal = {4711}
    with pytest.raises(CgroupInUseError, match="poduid-1"):
        machine.cgroups.retain_only([OTHER])
    assert sorted(machine.kernel.child_names(machine.base)) == ["poduid-1", "poduid-2"]
    assert machine.kernel.pids(machine.base / "poduid-2/c1") == [4712]


def test_the_cgroup_of_all_pods_stays_while_there_are_some(machine: Machine) -> None:
    machine.cgroups.create(UID, "c1", FREE)
    machine.cgroups.close()
    assert machine.kernel.child_names(machine.base) == ["poduid-1"]
    machine.cgroups.remove_pod(UID)
    machine.cgroups.close()
    machine.cgroups.create(UID, "c1", LIMITED)
    assert machine.text("poduid-1/c1/memory.max") == "100000000"
