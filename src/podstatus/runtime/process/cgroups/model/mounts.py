"""Parsing of cgroup mounts and memberships: mountinfo(5) and cgroups(7)."""

from collections.abc import Mapping

import msgspec

from podstatus.runtime.process.paths.mount_table import unescape

CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")
"""Controllers that are used for limits and accounting."""

_MOUNT_OPTIONS = frozenset(
    ("rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "favordynmods")
)
"""Version 1 mount options that are not controllers."""


class CgroupMount(msgspec.Struct, frozen=True, kw_only=True):
    """A cgroup hierarchy, as it is mounted."""

    mount_point: str
    """Where it is mounted."""
    root: str
    """Root of the visible part of the hierarchy; `/` is all of it."""


class CgroupMounts(msgspec.Struct, frozen=True, kw_only=True):
    """All mounted hierarchies; of repeated mounts, the first counts."""

    v1: Mapping[str, CgroupMount]
    """By controller, or by `name=…` for a hierarchy without controllers."""
    v2: CgroupMount | None


def parse_mounts(mountinfo: str) -> CgroupMounts:
    """Parse the cgroup mounts of /proc/self/mountinfo."""
    v1: dict[str, CgroupMount] = {}
    v2: CgroupMount | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, *rest) = left.split(" "), right.split(" ")
        mount = CgroupMount(mount_point=unescape(fields[4]), root=unescape(fields[3]))
        if kind == "cgroup2":
            v2 = v2 or mount
        elif kind == "cgroup":
            for option in set(rest[-1].split(",")) - _MOUNT_OPTIONS:
                v1.setdefault(option, mount)
    return CgroupMounts(v1=v1, v2=v2)


def parse_process_cgroups(text: str) -> Mapping[str, str]:
    """Parse /proc/self/cgroup: own cgroups by controller; "" is that of version 2."""
    own: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    return own


def cgroup_directory(mount: CgroupMount, path: str) -> str | None:
    """Return the folder of a cgroup; None if this mount does not show it."""
    root = mount.root.rstrip("/")
    # Dots: a cgroup outside of our cgroup namespace.
    if ".." in path.split("/") or not f"{path}/".startswith(f"{root}/"):
        return None
    return (mount.mount_point + path.removeprefix(root)).rstrip("/")
