"""Where cgroups are, from what the kernel says about us: mountinfo(5) and cgroups(7)."""

import re
from collections.abc import Mapping

import msgspec

CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")
"""The controllers that are of use: to limit, and to count."""

_MOUNT_OPTIONS = frozenset(
    ("rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "favordynmods")
)
"""Options of a mount of version 1 that say how it behaves."""
_OCTAL_ESCAPE = re.compile(r"\\([0-7]{3})")


class CgroupMount(msgspec.Struct, frozen=True, kw_only=True):
    """A hierarchy of cgroups as it is mounted."""

    mount_point: str
    """Where it is mounted."""
    root: str
    """Which part of the hierarchy is seen there; `/` is all of it."""


class CgroupMounts(msgspec.Struct, frozen=True, kw_only=True):
    """All that are mounted; what is mounted twice counts once."""

    v1: Mapping[str, CgroupMount]
    """By controller, or by `name=…` of a hierarchy without any."""
    v2: CgroupMount | None


def parse_mounts(mountinfo: str) -> CgroupMounts:
    """From /proc/self/mountinfo."""
    v1: dict[str, CgroupMount] = {}
    v2: CgroupMount | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, *rest) = left.split(" "), right.split(" ")
        mount = CgroupMount(mount_point=_unescape(fields[4]), root=_unescape(fields[3]))
        if kind == "cgroup2":
            v2 = v2 or mount
        elif kind == "cgroup":
            for option in set(rest[-1].split(",")) - _MOUNT_OPTIONS:
                v1.setdefault(option, mount)
    return CgroupMounts(v1=v1, v2=v2)


def parse_process_cgroups(text: str) -> Mapping[str, str]:
    """The cgroups that we are in by controller, from /proc/self/cgroup; "" is that of version 2."""
    own: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    return own


def cgroup_directory(mount: CgroupMount, path: str) -> str | None:
    """Where a cgroup is found; None if this mount does not show it."""
    shown = mount.root.rstrip("/")
    # Dots: a cgroup outside of the namespace that we see.
    if ".." in path.split("/") or not f"{path}/".startswith(f"{shown}/"):
        return None
    return (mount.mount_point + path.removeprefix(shown)).rstrip("/")


def _unescape(text: str) -> str:
    return _OCTAL_ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)
