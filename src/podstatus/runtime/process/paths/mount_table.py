"""The mount table: which filesystem a path is on, and at which other paths it is visible.

A path alone does not identify its contents: the same folder can be mounted a second time elsewhere,
and mounts below a folder come along when that folder is mounted in a container.

Upstream: mountinfo, proc_pid_mountinfo(5).
"""

import functools
import re
from collections.abc import Iterable, Iterator

import msgspec

_OCTAL_ESCAPE = re.compile(r"\\([0-7]{3})")


class MountEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A mount of this mount namespace."""

    id: int
    device: str
    """Device of the filesystem, `major:minor`."""
    root: str
    """Folder or file of the filesystem that is mounted."""
    mount_point: str
    """Where it is mounted."""
    fs_type: str
    """Type of the filesystem."""


@functools.lru_cache(maxsize=1)
def parse_mount_table(mountinfo: str) -> "MountTable":
    """Parse /proc/self/mountinfo; cached, since it seldom changes."""
    return MountTable(tuple(_parse_line(line) for line in mountinfo.splitlines() if line))


class MountTable:
    """All mounts of this mount namespace, in mount order."""

    def __init__(self, mounts: tuple[MountEntry, ...]) -> None:
        self._mounts = mounts
        self._by_id = {mount.id: mount for mount in mounts}

    def find_mount(self, path: str, mount_id: int | None = None) -> MountEntry | None:
        """Return the mount that a path is on, by mount ID if that still exists."""
        if mount_id in self._by_id:
            return self._by_id[mount_id]
        best = None
        for mount in self._mounts:
            # A later mount covers an earlier one at the same point.
            deeper = best is None or len(mount.mount_point) >= len(best.mount_point)
            if deeper and is_within(path, mount.mount_point):
                best = mount
        return best

    def below(self, path: str) -> Iterator[MountEntry]:
        """Return the mounts that come along with a recursive bind of a folder."""
        return (m for m in self._mounts if m.mount_point != path and is_within(m.mount_point, path))

    def of_type(self, kind: str) -> Iterator[MountEntry]:
        return (mount for mount in self._mounts if mount.fs_type == kind)

    def visible_paths(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return these paths and all others at which they, or parts of them, are visible."""
        visible = dict.fromkeys(paths)
        for path in tuple(visible):
            visible |= dict.fromkeys(self._visible_paths(path))
        return tuple(visible)

    def _visible_paths(self, path: str) -> Iterator[str]:
        mount = self.find_mount(path)
        if mount is None:
            return
        inside = _join(mount.root, path[len(mount.mount_point.rstrip("/")) :])
        for other in self._mounts:
            if other.device != mount.device:
                continue
            if is_within(inside, other.root):
                yield _join(other.mount_point, inside[len(other.root.rstrip("/")) :])
            elif is_within(other.root, inside):
                yield other.mount_point


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is the folder, or lies within it."""
    return folder in ("/", path) or path.startswith(folder + "/")


def _parse_line(line: str) -> MountEntry:
    left, _, right = line.partition(" - ")
    number, _, device, root, point, *_ = left.split(" ")
    return MountEntry(
        id=int(number),
        device=device,
        root=unescape(root),
        mount_point=unescape(point),
        fs_type=right.partition(" ")[0],
    )


def _join(folder: str, rest: str) -> str:
    return folder.rstrip("/") + ("/" + rest.strip("/") if rest.strip("/") else "") or "/"


def unescape(text: str) -> str:
    """Replace the octal escapes of a path in mountinfo."""
    return _OCTAL_ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
