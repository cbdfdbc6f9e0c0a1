"""Pods, processes and a cgroup file system for tests of limits."""

import subprocess
import sys
from pathlib import Path

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.process.cgroups.discovery import CgroupFinder
from podstatus.runtime.process.cgroups.pod_cgroups import CgroupPaths
from tests.runtime.process.cgroups.fake_cgroups import FakeCgroupFolders


def resources(requests: str = "", limits: str = "") -> ResourceRequirements:
    return ResourceRequirements(requests=_list(requests), limits=_list(limits))


def _list(text: str) -> dict[str, Quantity] | None:
    """Parse `100m 1Gi`: cpu and memory, `-` for none."""
    named = zip(("cpu", "memory"), text.split(), strict=False)
    return {name: Quantity(amount) for name, amount in named if amount != "-"} or None


def pod_of(
    *containers: ResourceRequirements,
    init: tuple[ResourceRequirements, ...] = (),
    own: ResourceRequirements | None = None,
) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", uid="u"),
        spec=PodSpec(
            containers=tuple(Container(name="c", resources=each) for each in containers),
            init_containers=tuple(Container(name="i", resources=each) for each in init) or None,
            resources=own,
        ),
    )


class Machine:
    """Cgroups on a fake kernel."""

    def __init__(self, folder: Path, controllers: str = "cpu memory pids") -> None:
        self.kernel = FakeCgroupFolders(folder, controllers)
        finder = CgroupFinder("ps", is_root=True, folders=self.kernel)
        self.cgroups = finder.find(self.kernel.mountinfo(), "0::/\n")
        self.base = folder / "ps"

    @property
    def slept(self) -> float:
        return self.kernel.slept

    def text(self, name: str) -> str:
        return (self.base / name).read_text()


_BEGIN = """
import os, sys
for file in sys.argv[2].split():
    with open(file, "w") as procs:
        procs.write("0")
exec(sys.argv[1])
"""


def start(place: CgroupPaths, program: str) -> "subprocess.Popen[str]":
    """Start a program that is in the cgroup from its beginning."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BEGIN, program, " ".join(place.procs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> int:
    process.communicate(timeout=60)
    return process.returncode
