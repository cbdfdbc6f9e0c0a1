"""Processes outside of a sandbox are out of reach of a container that runs as root."""

import os
import subprocess

import pytest

from podstatus.runtime.process.shim.bubblewrap_monitor import set_monitor_not_dumpable
from tests.runtime.process.shim_on_trial import ShimOnTrial, needs_bubblewrap
from tests.support.processes.process_runtime import need_bubblewrap

_AS_CONTAINER = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
"""Root without capabilities, like bubblewrap's monitor itself."""
_SANDBOX = (
    "--unshare-pid",
    "--as-pid-1",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
)
pytestmark = [
    need_bubblewrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="others have a user namespace of their own"),
]


def reach(pid: int, what: str) -> subprocess.CompletedProcess[str]:
    words = [*_AS_CONTAINER, "ls", f"/proc/{pid}/{what}"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", ["root/", "cwd/", "map_files/"])
def test_nothing_outside_can_be_looked_into_by_root_without_capabilities(
    shim: ShimOnTrial, what: str
) -> None:
    own = shim.pid
    arguments = (needs_bubblewrap(), *_SANDBOX)
    started = shim.launch("sleep", "60", bubblewrap=arguments, cwd="").started()
    with open(f"/proc/{started.process.pid}/stat", encoding="ascii") as file:  # noqa: PTH123
        monitor = int(file.read().rpartition(")")[2].split()[1])
    assert monitor not in (own, started.monitor.pid)
    found = {
        name: reach(pid, what)
        for name, pid in (
            ("monitor", monitor),
            ("container monitor", started.monitor.pid),
            ("shim", own),
        )
    }
    assert {name: done.returncode for name, done in found.items()} == dict.fromkeys(found, 2)
    assert all("Permission denied" in done.stderr for done in found.values())


def test_a_container_can_look_into_itself(shim: ShimOnTrial) -> None:
    arguments = (needs_bubblewrap(), *_SANDBOX, "--proc", "/proc")
    script = "ls /proc/self/root/ > /dev/null && cat /proc/self/environ && echo well"
    container = shim.launch("sh", "-c", script, bubblewrap=arguments, cwd="")
    assert container.ended().exit_code == 0
    assert b"well" in container.wrote()


def test_what_is_not_traced_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:  # noqa: S607
        assert not set_monitor_not_dumpable(other.pid)
        assert other.poll() is None
        other.kill()
