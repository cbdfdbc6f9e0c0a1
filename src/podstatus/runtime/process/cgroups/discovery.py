"""Find out where this agent may make cgroups, by making the one that all of its pods go in.

    root              <top of the hierarchy>/<name>, as the kubelet does it
    anybody else      <our own cgroup>/<name>, if it was given to us: systemd's Delegate=yes

A container gets a cgroup in every hierarchy that is mounted, also where nothing is limited or
counted: in a cgroup namespace it then sees no cgroup but its own, whatever it may mount.

In version 2 a cgroup that hands on limits has no processes of its own. If ours has none but us, we
move into a leaf beside our pods, `<name>-agent`; processes of others are left where they are.

    NoCgroupsError    there is no such place; why, and what to do
"""

import errno
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from podstatus.runtime.process.cgroups.folders import PROCS, CgroupFolders
from podstatus.runtime.process.cgroups.model.interface_files import Version, settings_for
from podstatus.runtime.process.cgroups.model.mounts import (
    COUNTED,
    CgroupMount,
    CgroupMounts,
    parse_mounts,
    parse_own,
    place_of,
)
from podstatus.runtime.process.cgroups.tree import Cgroups, enable, is_name
from podstatus.runtime.process.state.process_table import read_processes
from podstatus.runtime.resource_limits import machine_limits

_PROC = Path("/proc")
_WHAT_TO_DO = "run the agent as root, or as a service of systemd with Delegate=yes"


class NoCgroupsError(Exception):
    """No cgroup can be made for containers."""


def find_cgroups(name: str, *, under: str | None = None) -> Cgroups:
    """The cgroups of an agent; others on this machine need other names. Raises NoCgroupsError.

    `under` is the cgroup to make them in, such as `/system.slice/podstatus.service`.
    """
    finder = CgroupFinder(name, under=under, is_root=os.geteuid() == 0)
    return finder.find((_PROC / "self/mountinfo").read_text(), (_PROC / "self/cgroup").read_text())


class CgroupFinder:
    """Looks for a place where cgroups can be made."""

    def __init__(
        self,
        name: str,
        *,
        under: str | None,
        is_root: bool,
        folders: CgroupFolders | None = None,
    ) -> None:
        self._name = name
        self._under = under
        self._is_root = is_root
        self._folders = folders or CgroupFolders()
        self._missing: dict[str, str] = {}

    def find(self, mountinfo: str, own: str) -> Cgroups:
        """By what the kernel says of mounts, and of us. Raises NoCgroupsError."""
        if not is_name(self._name):
            raise NoCgroupsError(f"no cgroup can be called {self._name!r}; letters and digits can")
        mounts, ours = parse_mounts(mountinfo), parse_own(own)
        if "cpu" in mounts.v1 or "memory" in mounts.v1:
            version, bases = Version.V1, self._find_v1(mounts, ours)
        elif mounts.v2 is not None:
            version, bases = Version.V2, self._find_v2(mounts.v2, ours.get("", "/"))
        else:
            raise NoCgroupsError("no cgroups are mounted on this machine")
        if not bases and not self._is_root:
            raise NoCgroupsError(f"{self._why_none()}; {_WHAT_TO_DO}")
        others = self._find_others(mounts, ours, set(bases.values()))
        if not bases and not others:
            raise NoCgroupsError(f"{self._why_none()}; {_WHAT_TO_DO}")
        self._weigh(version, bases)
        for base in {*bases.values(), *others}:
            self._inherit(base)
        return Cgroups(version, bases, others=others, missing=self._missing, folders=self._folders)

    def _why_none(self) -> str:
        """The first reason; the others are most often the same for other controllers."""
        first, *others = sorted(set(self._missing.values()))
        return f"{first}, and so on for {len(others)} more" if others else first

    def _find_v1(self, mounts: CgroupMounts, ours: Mapping[str, str]) -> dict[str, Path]:
        bases: dict[str, Path] = {}
        for controller in COUNTED:
            mount = mounts.v1.get(controller)
            if mount is None:
                self._missing[controller] = f"the controller {controller} is not mounted"
                continue
            base = self._root(mount, ours.get(controller, "/")) / self._name
            try:
                self._folders.make(base)
            except OSError as error:
                self._missing[controller] = f"cannot make {base}: {error.strerror}"
            else:
                bases[controller] = base
        return bases

    def _find_v2(self, mount: CgroupMount, own: str) -> dict[str, Path]:
        root = self._root(mount, own)
        base = root / self._name
        offered = (self._folders.read(root / "cgroup.controllers") or "").split()
        usable = [controller for controller in COUNTED if controller in offered]
        for controller in {"cpu", "memory", "pids"}.difference(offered):
            self._missing[controller] = f"{root} does not offer the controller {controller}"
        try:
            self._hand_on(root, usable)
            self._folders.make(base)
        except OSError as error:
            self._missing |= dict.fromkeys(usable, f"cannot use {root}: {error.strerror}")
            return {}
        return dict.fromkeys(usable, base)

    def _find_others(
        self, mounts: CgroupMounts, ours: Mapping[str, str], taken: Collection[Path]
    ) -> tuple[Path, ...]:
        """In the hierarchies that neither limit nor count; where we may not, there is none."""
        hierarchies = {mounts.v1[name]: path for name, path in ours.items() if name in mounts.v1}
        if mounts.v2 is not None:
            hierarchies[mounts.v2] = ours.get("", "/")
        found = [self._find_other(mount, own) for mount, own in hierarchies.items()]
        return tuple(base for base in found if base is not None and base not in taken)

    def _find_other(self, mount: CgroupMount, own: str) -> Path | None:
        with suppress(NoCgroupsError, OSError):
            root = self._root(mount, own)
            base = root / self._name
            self._folders.make(base)
            if self._folders.may_enter(base) and (self._is_root or self._folders.may_enter(root)):
                return base
            self._folders.remove(base)
        return None

    def _inherit(self, base: Path) -> None:
        """Version 1: have all below what is above; into an empty cpuset no process can go."""
        for name in ("cpuset.cpus", "cpuset.mems"):
            above = self._folders.read(base.parent / name)
            if above and self._folders.read(base / name) == "":
                self._folders.write(base / name, above)
        for name in ("cgroup.clone_children", "memory.use_hierarchy"):
            if self._folders.read(base / name) == "0":
                with suppress(OSError):
                    self._folders.write(base / name, "1")

    def _root(self, mount: CgroupMount, own: str) -> Path:
        if self._under is None and self._is_root:
            return Path(mount.top)
        path = own if self._under is None else self._under
        found = place_of(mount, path)
        if found is None:
            raise NoCgroupsError(f"the cgroup {path} is not to be seen in {mount.top}")
        # Where an agent before us moved to, or systemd put us (DelegateSubgroup=).
        return Path(found.removesuffix(f"/{self._leaf}"))

    def _hand_on(self, root: Path, controllers: list[str]) -> None:
        try:
            enable(self._folders, root, controllers)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            self._step_aside(root)
            enable(self._folders, root, controllers)

    def _step_aside(self, root: Path) -> None:
        inside = self._folders.pids(root)
        ours = {os.getpid(), *(row.pid for row in read_processes().descendants(os.getpid()))}
        if others := sorted(set(inside) - ours):
            raise NoCgroupsError(
                f"in {root} are processes that are not ours: {others[:10]}; start the agent in a "
                "cgroup of its own: systemd-run --user --scope --property=Delegate=yes …"
            )
        leaf = root / self._leaf
        self._folders.make(leaf)
        for pid in inside:
            self._folders.write(leaf / PROCS, str(pid))

    @property
    def _leaf(self) -> str:
        return f"{self._name}-agent"

    def _weigh(self, version: Version, bases: Mapping[str, Path]) -> None:
        for setting in settings_for(version, machine_limits(os.cpu_count() or 1), container=False):
            if base := bases.get(setting.controller):
                with suppress(OSError):  # a matter of fairness, not of limits
                    self._folders.write(base / setting.file, setting.text)
