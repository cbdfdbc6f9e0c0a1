"""The helper that detects leftovers finds and reports them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from tests.support.processes.process_leftovers import Picture, Seen, take_picture, what_is_left


@contextmanager
def _process(program: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=90)


def test_nothing_is_left_of_what_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    with _process("print(1, flush=True); input()"):
        before = take_picture(folders=[tmp_path], cgroups="podstatus")
        assert what_is_left(before, take_picture(folders=[tmp_path], cgroups="podstatus")) == []


def test_a_running_process_is_reported_with_its_parent() -> None:
    before = take_picture()
    with _process("import os\nif os.fork(): os.wait()\nelse: print(1, flush=True); input()") as top:
        left = [line for line in what_is_left(before, take_picture()) if "process" in line]
    assert len(left) == 2
    assert any(f"a child of {top.pid} (" in line for line in left)
    assert all(line.endswith("still runs") for line in left)


def test_a_zombie_is_reported_even_if_it_ran_before() -> None:
    with _process("print(1, flush=True); input()") as process:
        before = take_picture()
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        (line,) = what_is_left(before, take_picture())
    assert line.startswith(f"process {process.pid} (python")
    assert f"is a zombie: {os.getpid()} (" in line


def test_pipes_are_reported_and_files_without_a_name_are_counted() -> None:
    pidfd = os.pidfd_open(os.getpid())
    before = take_picture()
    opened = [*os.pipe(), os.pidfd_open(os.getpid())]
    try:
        left = what_is_left(before, take_picture())
    finally:
        for number in (*opened, pidfd):
            os.close(number)
    assert left[0] == "the agent still has open: anon_inode:[pidfd], 1x"
    assert left[1].startswith("the agent still has open: pipe:[")
    assert left[1].endswith(", 2x")
    assert len(left) == 2


def test_of_nested_folders_the_topmost_is_reported(tmp_path: Path) -> None:
    before = take_picture(folders=[tmp_path])
    (tmp_path / "pods/uid/containers").mkdir(parents=True)
    (tmp_path / "link").symlink_to("/proc")
    assert what_is_left(before, take_picture(folders=[tmp_path])) == [
        f"{tmp_path}/link is still there",
        f"{tmp_path}/pods is still there",
    ]


def test_cgroups_are_reported() -> None:
    nothing = Picture(processes=frozenset(), open_files={}, paths=frozenset(), cgroups=frozenset())
    some = Picture(
        processes=frozenset([Seen(7, 1, False, 1, "sleep 600", "init")]),
        open_files={},
        paths=frozenset(),
        cgroups=frozenset(["/cg/ps/pod1", "/cg/ps/pod1/c1", "/cg/ps/pod10"]),
    )
    assert what_is_left(nothing, some) == [
        "process 7 (sleep 600), a child of 1 (init), still runs",
        "cgroup /cg/ps/pod1 is still there",
        "cgroup /cg/ps/pod10 is still there",
    ]
    assert what_is_left(some, nothing) == []


def test_real_cgroups_are_found_by_the_name_of_the_agent() -> None:
    name = f"podstatus-left-{os.getpid()}"
    try:
        cgroups = find_cgroups(name)
    except CgroupsUnavailableError as error:
        pytest.skip(f"no cgroups: {error}")
    try:
        before = take_picture(cgroups=name)
        place = cgroups.create(PodUID("u"), "c1", ResourceRequirements())
        left = what_is_left(before, take_picture(cgroups=name))
    finally:
        cgroups.retain_only([])
        cgroups.close()
    assert len(left) == len(place.procs) > 0
    assert all(line.endswith("/podu is still there") for line in left)
    assert take_picture(cgroups=name).cgroups == frozenset()


_ORPHAN = """
import os, signal
from tests.support.processes.process_leftovers import *
become_subreaper()
before = take_picture()
ready, done = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.write(done, b"%d " % os.getpid())
        signal.pause()
    os._exit(0)
os.wait()
orphan = int(os.read(ready, 20))
os.close(ready); os.close(done)
print(what_is_left(before, take_picture())[0].split(",")[-1])
os.kill(orphan, signal.SIGKILL)
os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
print("zombie" in what_is_left(before, take_picture())[0])
wait_for_adopted()
print(what_is_left(before, take_picture()))
"""


def test_orphans_become_children_of_the_checker() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _ORPHAN],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout.splitlines() == [" still runs", "True", "[]"], result.stderr
