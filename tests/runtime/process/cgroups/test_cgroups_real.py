"""Limits with real cgroups and real processes, where the machine allows it."""

import itertools
import json
import os
from pathlib import Path

import pytest

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.process.cgroups.folders import CgroupFolders
from podstatus.runtime.process.cgroups.model.interface_files import CgroupVersion, flat_keyed
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from tests.runtime.process.cgroups.cgroup_scene import (
    end,
    pod_of,
    read_line,
    resources,
    start,
)

UID = PodUID("u")


def test_who_eats_too_much_memory_is_killed_and_it_shows(cgroups: Cgroups) -> None:
    cgroups.create_pod(pod_of(resources("", "- 48Mi")))
    place = cgroups.create(UID, "c1", resources("", "- 48Mi"))
    assert flat_keyed(Path(place.oom_events).read_text()).get("oom_kill") == 0
    assert end(start(place, "eaten = b'x' * (256 << 20)")) == -9
    assert flat_keyed(Path(place.oom_events).read_text()).get("oom_kill") == 1
    other = cgroups.create(UID, "c2", resources("", "- 48Mi"))
    assert end(start(other, "eaten = b'x' * (8 << 20)")) == 0
    assert flat_keyed(Path(other.oom_events).read_text()).get("oom_kill") == 0


def test_a_process_has_a_cgroup_of_its_own_in_every_hierarchy(cgroups: Cgroups) -> None:
    place = cgroups.create(UID, "c1", ResourceRequirements())
    process = start(place, "print('ready', flush=True); input()")
    try:
        assert read_line(process) == "ready"
        lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
    finally:
        process.kill()
        end(process)
    if os.geteuid() == 0:
        assert [line for line in lines if not line.endswith("/podu/c1/inside")] == []
    cgroups.remove_pod(UID)
    assert [file for file in place.procs if Path(file).exists()] == []


def test_a_creation_that_was_interrupted_anywhere_is_completed_or_removed(
    cgroups: Cgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = cgroups.create(UID, "c1", ResourceRequirements())
    pods = [Path(file).parents[2] for file in whole.procs]

    def is_interrupted(steps: int) -> bool:
        cgroups.retain_only([])
        assert not any(pod.exists() for pod in pods)
        left, create = itertools.count(steps, -1), CgroupFolders.create

        def create_one(folders: CgroupFolders, folder: Path) -> None:
            if next(left) == 0:
                raise KeyboardInterrupt
            create(folders, folder)

        with monkeypatch.context() as patched:
            patched.setattr(CgroupFolders, "create", create_one)
            try:
                cgroups.create(UID, "c1", ResourceRequirements())
            except KeyboardInterrupt:
                return True
        return False

    steps = itertools.count()
    while is_interrupted(step := next(steps)):
        assert cgroups.create(UID, "c1", ResourceRequirements()) == whole
        is_interrupted(step)
    assert step >= 3 * len(pods) > 0


_IN_NAMESPACES = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000 | 0x20000 | 0x2000000) == 0
found = {}
for name, kind, options in (("cgroup2", b"cgroup2", None), ("memory", b"cgroup", b"memory")):
    mounted = libc.mount(b"none", b"/mnt", kind, ctypes.c_ulong(0), options) == 0
    if mounted:
        limits = [file for file in ("memory.limit_in_bytes", "memory.max")
                  if os.path.exists(f"/mnt/{file}")]
        found[name] = {
            "below": [each.name for each in os.scandir("/mnt") if each.is_dir()],
            "limits": [open(f"/mnt/{file}").read().strip() for file in limits],
        }
        libc.umount2(b"/mnt", 2)
print(json.dumps(found), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount what it does not own")
def test_whatever_it_mounts_it_sees_no_cgroup_but_its_own(cgroups: Cgroups) -> None:
    """Without a seccomp filter: the cgroup namespace begins below the limits."""
    place = cgroups.create(UID, "c1", resources("", "- 64Mi"))
    cgroups.create(UID, "c2", resources("", "- 64Mi"))
    process = start(place, _IN_NAMESPACES)
    visible = json.loads(read_line(process))
    assert end(process) == 0
    if not visible:
        pytest.skip("no cgroup can be mounted in a user namespace here")
    for seen in visible.values():
        assert seen["below"] == []
        assert [limit for limit in seen["limits"] if limit != "max" and int(limit) < 2**62] == []


def test_who_computes_too_much_is_slowed_down(cgroups: Cgroups) -> None:
    place = cgroups.create(UID, "c1", resources("", "200m"))
    process = start(
        place, "import time\nwhile time.process_time() < 0.3: pass\nprint(time.process_time())"
    )
    assert float(read_line(process)) >= 0.3
    assert end(process) == 0
    counts = (Path(file).parent.with_name("cpu.stat") for file in place.procs)
    counted = next(file for file in counts if file.exists()).read_text()
    periods, throttled = (
        flat_keyed(counted).get("nr_periods"),
        flat_keyed(counted).get("nr_throttled"),
    )
    used = cgroups.usage(UID, "c1")
    assert used is not None
    assert used.cpu_seconds is not None
    assert periods is not None
    # 20 ms per period, plus one slice per processor, which is charged afterwards.
    assert 0.2 <= used.cpu_seconds <= (periods + 1) * 0.020 + 0.010 * (os.cpu_count() or 1)
    assert throttled


def test_what_is_in_force_is_read_back(cgroups: Cgroups) -> None:
    requested = resources("100m", "250m 100M")
    cgroups.create(UID, "c1", requested)
    facts = cgroups.actuated_resources(UID, "c1", requested)
    assert facts == ResourceFacts(
        cpu_request=Quantity("100m"),
        cpu_limit=Quantity("250m"),
        memory_limit=Quantity("100000000"),
    )
    read = cgroups.actuated_resources(UID, "c1")
    assert read is not None
    assert read.memory_limit == "97656Ki"


def test_a_limit_below_the_least_is_the_least(cgroups: Cgroups) -> None:
    cgroups.create(UID, "c1", resources("1m", "1m"))
    facts = cgroups.actuated_resources(UID, "c1")
    assert facts is not None
    assert facts.cpu_limit == "10m"
    assert facts.cpu_request == ("2m" if cgroups.version is CgroupVersion.V1 else None)


def test_usage_is_that_of_the_processes_in_it(cgroups: Cgroups) -> None:
    place = cgroups.create(UID, "c1", ResourceRequirements())
    process = start(place, "eaten = b'x' * (32 << 20); print('ready', flush=True); input()")
    try:
        assert read_line(process) == "ready"
        for used in (cgroups.usage(UID, "c1"), cgroups.usage(UID)):
            assert used is not None
            assert used.pids == 1
            assert 32 << 20 <= (used.memory_bytes or 0) < 128 << 20
            assert used.cpu_seconds
    finally:
        process.kill()
        end(process)


def test_stragglers_are_killed_before_their_cgroup_is_removed(cgroups: Cgroups) -> None:
    place = cgroups.create(UID, "c1", ResourceRequirements())
    forking = (
        "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.fork(); os.fork(); print('ready', flush=True); os.read(0, 1)"
    )
    process = start(place, forking)
    ready = [read_line(process) for _ in range(4)]
    assert ready == ["ready"] * 4
    cgroups.remove_pod(UID)
    assert end(process) == -9
    assert cgroups.actuated_resources(UID, "c1") is None


def test_what_is_left_in_a_cgroup_is_ended_and_what_it_used_is_still_known(
    cgroups: Cgroups,
) -> None:
    place = cgroups.create(UID, "c1", ResourceRequirements())
    ignoring = (
        "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True); os.read(0, 1)"
    )
    process = start(place, ignoring)
    assert read_line(process) == "ready"
    cgroups.kill(UID, "c1")
    assert end(process) == -9
    assert cgroups.usage(UID, "c1") is not None
    cgroups.kill(UID, "c1")
    cgroups.kill(UID, "never-made")
