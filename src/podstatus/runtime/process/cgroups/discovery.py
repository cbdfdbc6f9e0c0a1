"""Finds where this agent may create cgroups, and creates the parent cgroup of all its pods.

    root              <top of the hierarchy>/<name>, as the kubelet does
    ordinary user     <own cgroup>/<name>, if it is delegated: systemd's Delegate=yes

A container gets a cgroup in every mounted hierarchy, even where nothing is limited or counted: in
its cgroup namespace it then sees no cgroup but its own, whatever it may mount.

In version 2, a cgroup with controllers enabled for its children has no processes of its own. If the
agent's cgroup holds no other processes, the agent moves into a leaf beside its pods,
`<name>-agent`; foreign processes are never moved.

    CgroupsUnavailableError    no suitable cgroup; the message says why and what to do
"""

import errno
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from podstatus.runtime.cpu_and_memory_limits import node_limits
from podstatus.runtime.process.cgroups.folders import PROCS, CgroupFolders
from podstatus.runtime.process.cgroups.model.interface_files import CgroupVersion, settings_for
from podstatus.runtime.process.cgroups.model.mounts import (
    CONTROLLERS,
    CgroupMount,
    CgroupMounts,
    cgroup_directory,
    parse_mounts,
    parse_process_cgroups,
)
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups, enable_controllers, is_valid_name
from podstatus.runtime.process.state.process_table import read_processes

_PROC = Path("/proc")
_REMEDY = "run the agent as root, or as a service of systemd with Delegate=yes"


class CgroupsUnavailableError(Exception):
    """No cgroup can be created for containers."""


def find_cgroups(name: str) -> Cgroups:
    """Return the cgroups of an agent; `name` is unique per machine.

    Raises CgroupsUnavailableError.
    """
    finder = CgroupFinder(name, is_root=os.geteuid() == 0, folders=CgroupFolders())
    return finder.find((_PROC / "self/mountinfo").read_text(), (_PROC / "self/cgroup").read_text())


class CgroupFinder:
    """Finds a place where cgroups can be created."""

    def __init__(self, name: str, *, is_root: bool, folders: CgroupFolders) -> None:
        self._name = name
        self._is_root = is_root
        self._folders = folders
        self._missing: dict[str, str] = {}

    def find(self, mountinfo: str, own: str) -> Cgroups:
        """Return the cgroups, given /proc/self/mountinfo and /proc/self/cgroup.

        Raises CgroupsUnavailableError.
        """
        if not is_valid_name(self._name):
            raise CgroupsUnavailableError(
                f"invalid cgroup name {self._name!r}; use letters and digits"
            )
        mounts, own_cgroups = parse_mounts(mountinfo), parse_process_cgroups(own)
        if "cpu" in mounts.v1 or "memory" in mounts.v1:
            version, bases = CgroupVersion.V1, self._find_v1(mounts, own_cgroups)
        elif mounts.v2 is not None:
            version, bases = CgroupVersion.V2, self._find_v2(mounts.v2, own_cgroups.get("", "/"))
        else:
            raise CgroupsUnavailableError("no cgroups are mounted on this machine")
        if not bases and not self._is_root:
            raise CgroupsUnavailableError(f"{self._unavailable_reason()}; {_REMEDY}")
        others = self._find_unlimited(mounts, own_cgroups, set(bases.values()))
        if not bases and not others:
            raise CgroupsUnavailableError(f"{self._unavailable_reason()}; {_REMEDY}")
        self._apply_node_limits(version, bases)
        for base in {*bases.values(), *others}:
            self._inherit_settings(base)
        return Cgroups(version, bases, others=others, missing=self._missing, folders=self._folders)

    def _unavailable_reason(self) -> str:
        """Return the first reason; the others usually repeat it for other controllers."""
        first, *others = sorted(set(self._missing.values()))
        return f"{first} (and {len(others)} more)" if others else first

    def _find_v1(self, mounts: CgroupMounts, own_cgroups: Mapping[str, str]) -> dict[str, Path]:
        bases: dict[str, Path] = {}
        for controller in CONTROLLERS:
            mount = mounts.v1.get(controller)
            if mount is None:
                self._missing[controller] = f"controller {controller} is not mounted"
                continue
            base = self._root(mount, own_cgroups.get(controller, "/")) / self._name
            try:
                self._folders.create(base)
            except OSError as error:
                self._missing[controller] = f"cannot create {base}: {error.strerror}"
            else:
                bases[controller] = base
        return bases

    def _find_v2(self, mount: CgroupMount, own: str) -> dict[str, Path]:
        root = self._root(mount, own)
        base = root / self._name
        available = (self._folders.read(root / "cgroup.controllers") or "").split()
        usable = [controller for controller in CONTROLLERS if controller in available]
        for controller in {"cpu", "memory", "pids"}.difference(available):
            self._missing[controller] = f"controller {controller} is not available in {root}"
        try:
            self._delegate(root, usable)
            self._folders.create(base)
        except OSError as error:
            self._missing |= dict.fromkeys(usable, f"cannot use {root}: {error.strerror}")
            return {}
        return dict.fromkeys(usable, base)

    def _find_unlimited(
        self, mounts: CgroupMounts, own_cgroups: Mapping[str, str], taken: Collection[Path]
    ) -> tuple[Path, ...]:
        """Create cgroups in hierarchies without limits or accounting, where permitted."""
        hierarchies = {
            mounts.v1[name]: path for name, path in own_cgroups.items() if name in mounts.v1
        }
        if mounts.v2 is not None:
            hierarchies[mounts.v2] = own_cgroups.get("", "/")
        bases = [self._find_unlimited_hierarchy(mount, own) for mount, own in hierarchies.items()]
        return tuple(base for base in bases if base is not None and base not in taken)

    def _find_unlimited_hierarchy(self, mount: CgroupMount, own: str) -> Path | None:
        with suppress(CgroupsUnavailableError, OSError):
            root = self._root(mount, own)
            base = root / self._name
            self._folders.create(base)
            if self._folders.can_attach(base) and (self._is_root or self._folders.can_attach(root)):
                return base
            self._folders.remove(base)
        return None

    def _inherit_settings(self, base: Path) -> None:
        """Version 1: copy settings of the parent; an empty cpuset accepts no processes."""
        for name in ("cpuset.cpus", "cpuset.mems"):
            inherited = self._folders.read(base.parent / name)
            if inherited and self._folders.read(base / name) == "":
                self._folders.write(base / name, inherited)
        for name in ("cgroup.clone_children", "memory.use_hierarchy"):
            if self._folders.read(base / name) == "0":
                with suppress(OSError):
                    self._folders.write(base / name, "1")

    def _root(self, mount: CgroupMount, own: str) -> Path:
        if self._is_root:
            return Path(mount.mount_point)
        folder = cgroup_directory(mount, own)
        if folder is None:
            raise CgroupsUnavailableError(f"cgroup {own} is not visible in {mount.mount_point}")
        # The leaf that a previous agent moved to, or that systemd chose (DelegateSubgroup=).
        return Path(folder.removesuffix(f"/{self._leaf}"))

    def _delegate(self, root: Path, controllers: list[str]) -> None:
        try:
            enable_controllers(self._folders, root, controllers)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            self._move_to_leaf(root)
            enable_controllers(self._folders, root, controllers)

    def _move_to_leaf(self, root: Path) -> None:
        pids = self._folders.pids(root)
        own = {os.getpid(), *(row.pid for row in read_processes().descendants(os.getpid()))}
        if others := sorted(set(pids) - own):
            raise CgroupsUnavailableError(
                f"{root} contains processes of others: {others[:10]}; start the agent in a "
                "cgroup of its own: systemd-run --user --scope --property=Delegate=yes …"
            )
        leaf = root / self._leaf
        self._folders.create(leaf)
        for pid in pids:
            self._folders.write(leaf / PROCS, str(pid))

    @property
    def _leaf(self) -> str:
        return f"{self._name}-agent"

    def _apply_node_limits(self, version: CgroupVersion, bases: Mapping[str, Path]) -> None:
        for setting in settings_for(version, node_limits(os.cpu_count() or 1), container=False):
            if base := bases.get(setting.controller):
                with suppress(OSError):  # only fairness depends on it, no limit
                    self._folders.write(base / setting.file, setting.text)
