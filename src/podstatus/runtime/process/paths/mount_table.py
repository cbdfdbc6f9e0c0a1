"""What is mounted where: which file system a path is on, and under which other paths it is seen.

A path alone does not tell what it shows: the same folder can be mounted a second time elsewhere,
and a mount below a folder comes along when that folder is mounted in a container.

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
    """Of the file system, as `major:minor`."""
    root: str
    """Which folder or file of the file system is seen."""
    mount_point: str
    """Where it is mounted."""
    fs_type: str
    """The type of the file system."""


@functools.lru_cache(maxsize=1)
def parse_mount_table(mountinfo: str) -> "MountTable":
    """From /proc/self/mountinfo; it seldom changes between two looks."""
    return MountTable(tuple(_parse_line(line) for line in mountinfo.splitlines() if line))


class MountTable:
    """All mounts of this mount namespace, in the order in which they were made."""

    def __init__(self, mounts: tuple[MountEntry, ...]) -> None:
        self._mounts = mounts
        self._by_id = {mount.id: mount for mount in mounts}

    def find_mount(self, path: str, mount_id: int | None = None) -> MountEntry | None:
        """The mount that shows a path, by its ID if that is known and still there."""
        if mount_id in self._by_id:
            return self._by_id[mount_id]
        found = None
        for mount in self._mounts:
            # The later one covers an earlier one at the same point.
            deeper = found is None or len(mount.mount_point) >= len(found.mount_point)
            if deeper and is_within(path, mount.mount_point):
                found = mount
        return found

    def below(self, path: str) -> Iterator[MountEntry]:
        """The mounts that come along if a folder is mounted with all below it."""
        return (m for m in self._mounts if m.mount_point != path and is_within(m.mount_point, path))

    def of_type(self, kind: str) -> Iterator[MountEntry]:
        """The mounts of a type of file system."""
        return (mount for mount in self._mounts if mount.fs_type == kind)

    def visible_paths(self, paths: Iterable[str]) -> tuple[str, ...]:
        """These paths, and all others under which they, or parts of them, are seen."""
        places = dict.fromkeys(paths)
        for path in tuple(places):
            places |= dict.fromkeys(self._visible_paths(path))
        return tuple(places)

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
    """Whether a path is a folder, or in it."""
    return folder in ("/", path) or path.startswith(folder + "/")


def _parse_line(line: str) -> MountEntry:
    left, _, right = line.partition(" - ")
    number, _, device, root, point, *_ = left.split(" ")
    return MountEntry(
        id=int(number),
        device=device,
        root=_unescape(root),
        mount_point=_unescape(point),
        fs_type=right.partition(" ")[0],
    )


def _join(folder: str, rest: str) -> str:
    return folder.rstrip("/") + ("/" + rest.strip("/") if rest.strip("/") else "") or "/"


def _unescape(text: str) -> str:
    return _OCTAL_ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)
