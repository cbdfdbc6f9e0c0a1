"""Discovery of the place for cgroups, by mounts, own cgroups and permissions."""

import os
from pathlib import Path

import pytest

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.cgroups.discovery import CgroupFinder, CgroupsUnavailableError
from podstatus.runtime.process.cgroups.model.mounts import (
    CgroupMount,
    cgroup_directory,
    parse_mounts,
    parse_process_cgroups,
)
from tests.runtime.process.cgroups.fake_cgroups import FakeCgroupFolders

UID = PodUID("uid-1")
HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/1f /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:32 / /mnt/me\\040too rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_mounts_are_read() -> None:
    mounts = parse_mounts(HYBRID)
    both = CgroupMount(mount_point="/sys/fs/cgroup/cpu,cpuacct", root="/")
    memory = CgroupMount(mount_point="/sys/fs/cgroup/memory", root="/docker/1f")
    systemd = CgroupMount(mount_point="/sys/fs/cgroup/systemd", root="/")
    counted = {"cpu": both, "cpuacct": both, "memory": memory}
    assert mounts.v1 == {**counted, "name=systemd": systemd}
    assert mounts.v2 == CgroupMount(mount_point="/sys/fs/cgroup/unified", root="/")
    spaced = parse_mounts(HYBRID.splitlines()[3])
    assert spaced.v1["memory"].mount_point == "/mnt/me too"


def test_our_own_cgroups_are_read() -> None:
    own = parse_process_cgroups(
        "4:memory:/a:b/c\n1:cpu,cpuacct:/\n9:name=systemd:/init\n0::/user.slice\n"
    )
    assert own["memory"] == "/a:b/c"
    assert own["cpu"] == own["cpuacct"] == "/"
    assert own[""] == "/user.slice"


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("/", "/", "/cg"),
        ("/", "/a/b", "/cg/a/b"),
        ("/docker/1f", "/docker/1f", "/cg"),
        ("/docker/1f", "/docker/1f/x", "/cg/x"),
        ("/docker/1f", "/docker/1fa", None),
        ("/docker/1f", "/", None),
        ("/", "/../other", None),
    ],
)
def test_a_cgroup_is_found_in_its_mount(root: str, path: str, expected: str | None) -> None:
    assert cgroup_directory(CgroupMount(mount_point="/cg", root=root), path) == expected


def _finder(fake: FakeCgroupFolders, *, is_root: bool = False) -> CgroupFinder:
    return CgroupFinder("ps", is_root=is_root, folders=fake)


def test_root_makes_them_at_the_top(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path, own="user.slice")
    cgroups = _finder(fake, is_root=True).find(fake.mountinfo(), "0::/user.slice\n")
    place = cgroups.create(UID, "c1", ResourceRequirements())
    assert place.procs == (f"{tmp_path}/ps/poduid-1/c1/inside/cgroup.procs",)
    assert place.oom_events == f"{tmp_path}/ps/poduid-1/c1/memory.events"
    assert not (tmp_path / "ps-agent").exists()


def test_others_make_them_in_their_own_and_step_aside(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path, own="me.scope")
    own = tmp_path / "me.scope"
    fake.put(own, os.getpid())
    cgroups = _finder(fake).find(fake.mountinfo(), "0::/me.scope\n")
    assert fake.pids(own) == []
    assert fake.pids(own / "ps-agent") == [os.getpid()]
    assert cgroups.create(UID, "c1", ResourceRequirements()).procs == (
        f"{own}/ps/poduid-1/c1/inside/cgroup.procs",
    )


def test_an_agent_that_is_started_again_in_its_leaf_finds_the_same(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path, own="me.scope")
    fake.put(tmp_path / "me.scope", os.getpid())
    first = _finder(fake).find(fake.mountinfo(), "0::/me.scope\n")
    again = _finder(fake).find(fake.mountinfo(), "0::/me.scope/ps-agent\n")
    place = first.create(UID, "c1", ResourceRequirements())
    assert again.create(UID, "c1", ResourceRequirements()) == place


def test_processes_of_others_are_not_moved(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path, own="session.scope")
    fake.put(tmp_path / "session.scope", 1, os.getpid())
    with pytest.raises(
        CgroupsUnavailableError, match=r"processes of others: \[1\]; start the agent in a cgroup of"
    ):
        _finder(fake).find(fake.mountinfo(), "0::/session.scope\n")
    assert fake.pids(tmp_path / "session.scope") == [1, os.getpid()]
    assert fake.child_names(tmp_path / "session.scope") == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "/sys/fs/cgroup"])
def test_only_a_name_is_a_name(tmp_path: Path, name: str) -> None:
    fake = FakeCgroupFolders(tmp_path)
    with pytest.raises(CgroupsUnavailableError, match="invalid cgroup name"):
        CgroupFinder(name, is_root=True, folders=fake).find(fake.mountinfo(), "0::/\n")


def test_what_may_not_be_written_is_no_place(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path)
    fake.refused = {"cgroup.subtree_control"}
    with pytest.raises(
        CgroupsUnavailableError, match="Permission denied; run the agent as root, or as"
    ):
        _finder(fake).find(fake.mountinfo(), "0::/\n")
    assert fake.child_names(tmp_path) == []


def test_a_machine_without_cgroups_has_no_place(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path, controllers="")
    with pytest.raises(CgroupsUnavailableError, match="controller cpu is not available"):
        _finder(fake).find(fake.mountinfo(), "0::/\n")
    with pytest.raises(CgroupsUnavailableError, match="no cgroups are mounted"):
        _finder(fake).find("", "0::/\n")
    with pytest.raises(CgroupsUnavailableError, match=r"cgroup /../x is not visible"):
        _finder(fake).find(fake.mountinfo(), "0::/../x\n")


def test_root_makes_them_also_where_nothing_can_be_limited(tmp_path: Path) -> None:
    fake = FakeCgroupFolders(tmp_path, controllers="")
    cgroups = _finder(fake, is_root=True).find(fake.mountinfo(), "0::/\n")
    assert cgroups.missing.keys() == {"cpu", "memory", "pids"}
    place = cgroups.create(UID, "c1", ResourceRequirements())
    assert place.procs == (f"{tmp_path}/ps/poduid-1/c1/inside/cgroup.procs",)
    cgroups.remove_pod(UID)
    cgroups.close()
    assert fake.child_names(tmp_path) == []


def _hierarchy(folder: Path, **files: str) -> str:
    """Create a hierarchy of version 1; return its line of mountinfo."""
    folder.mkdir()
    for name, text in {"cgroup.procs": "", **files}.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    return f"50 31 0:50 / {folder} rw - cgroup cgroup rw,xattr,{folder.name}\n"


def test_there_is_one_in_every_hierarchy(tmp_path: Path) -> None:
    unified = tmp_path / "unified"
    unified.mkdir()
    fake = FakeCgroupFolders(unified)
    named = "name=systemd", "freezer"
    mountinfo = fake.mountinfo() + "".join(_hierarchy(tmp_path / name) for name in named)

    class Hybrid(FakeCgroupFolders):
        def create(self, folder: Path) -> None:
            if folder.is_relative_to(unified):
                fake.create(folder)
                return
            folder.mkdir(exist_ok=True)
            (folder / "cgroup.procs").touch()

    own = "2:name=systemd:/\n1:freezer:/\n0::/\n"
    finder = CgroupFinder("ps", is_root=True, folders=Hybrid(tmp_path / "unified"))
    place = finder.find(mountinfo, own).create(UID, "c1", ResourceRequirements())
    assert set(place.procs) == {
        f"{tmp_path}/{name}/ps/poduid-1/c1/inside/cgroup.procs" for name in ("unified", *named)
    }


def test_a_hierarchy_in_which_none_can_be_made_is_left_out(tmp_path: Path) -> None:
    unified = tmp_path / "unified"
    unified.mkdir()
    fake = FakeCgroupFolders(unified)
    line = f"50 31 0:50 / {tmp_path}/gone rw - cgroup cgroup rw,freezer\n"
    cgroups = _finder(fake, is_root=True).find(fake.mountinfo() + line, "1:freezer:/\n0::/\n")
    (procs,) = cgroups.create(UID, "c1", ResourceRequirements()).procs
    assert procs.startswith(str(unified))


def test_version_1_without_permission_says_so(tmp_path: Path) -> None:
    class Closed(FakeCgroupFolders):
        def create(self, folder: Path) -> None:
            raise PermissionError(13, "Permission denied", str(folder))

    with pytest.raises(CgroupsUnavailableError) as refused:
        _finder(Closed(tmp_path), is_root=True).find(HYBRID, "")
    message = str(refused.value)
    assert message.startswith("cannot create /sys/fs/cgroup/cpu,cpuacct/ps: Permission denied (and")
    assert message.count("cannot create") == 1
