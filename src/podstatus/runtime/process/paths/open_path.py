"""Opens a host path component by component, so that the checked file is the opened one.

Each component is opened relative to its parent, and the kernel follows no symbolic link. Links of
the system are resolved here: those owned by root in `/`, `/var`, and below `/etc` and `/usr`, where
only root can write. A process that can create a link there is already root on the host; anywhere
else it may be another pod that replaces a folder by a link.

Upstream: the kubelet resolves a hostPath by name, with all its links, twice.
"""

import errno
import os
import posixpath
import stat
from typing import Self

import msgspec

from podstatus.runtime.process.paths.mount_table import is_within

_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
"""The kernel's limit."""
_LINK_FOLDERS, _LINK_TREES = ("/", "/var"), ("/etc", "/usr")
_GROUP_OR_OTHER_WRITE = 0o022


class LinkError(Exception):
    """The path contains a symbolic link that must not be followed; the message names it."""


class OpenedPath(msgspec.Struct):
    """A file or folder opened with O_PATH; close it by `with`."""

    file: int
    path: str
    """Path without links."""
    missing: tuple[str, ...] = ()
    """Components that do not exist; `file` is the last existing folder."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file)

    @property
    def stat(self) -> os.stat_result:
        """The result of fstat(2) on `file`."""
        return os.fstat(self.file)

    @property
    def mount_id(self) -> int | None:
        with open(f"/proc/self/fdinfo/{self.file}", encoding="ascii") as lines:  # noqa: PTH123
            for line in lines:
                name, _, value = line.partition(":")
                if name == "mnt_id":
                    return int(value)
        return None


def open_path(path: str) -> OpenedPath:
    """Open an absolute path. Raises LinkError, OSError."""
    for _ in range(_MAX_LINKS + 1):
        result = _open_or_follow(path)
        if isinstance(result, OpenedPath):
            return result
        path = result
    raise LinkError(f"{path}: too many symbolic links")


def create_missing(opened: OpenedPath, *, is_folder: bool) -> None:
    """Create the missing components: a folder with its parents, or an empty file.

    Raises OSError.
    """
    if not is_folder:
        if len(opened.missing) > 1:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        os.close(os.open(opened.missing[0], _CREATE_FLAGS, 0o644, dir_fd=opened.file))
        return
    folder = os.dup(opened.file)
    try:
        for name in opened.missing:
            os.mkdir(name, 0o755, dir_fd=folder)
            child = os.open(name, _PATH_FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = child
    finally:
        os.close(folder)


def _open_or_follow(path: str) -> OpenedPath | str:
    """Open a path; or return the path with its first link resolved."""
    steps = [name for name in path.split("/") if name not in ("", ".")]
    folder, walked = os.open("/", _PATH_FLAGS | os.O_DIRECTORY), "/"
    for number, name in enumerate(steps):
        try:
            child = os.open(name, _PATH_FLAGS, dir_fd=folder)
        except FileNotFoundError:
            return OpenedPath(folder, walked, tuple(steps[number:]))
        except BaseException:
            os.close(folder)
            raise
        try:
            target = _read_link(folder, walked, child, name)
        except BaseException:
            os.close(child)
            raise
        finally:
            os.close(folder)
        folder = child
        if target is not None:
            os.close(folder)
            return posixpath.normpath(posixpath.join(walked, target, *steps[number + 1 :]))
        walked = posixpath.join(walked, name)
    return OpenedPath(folder, walked)


def _read_link(folder: int, where: str, below: int, name: str) -> str | None:
    """Return a link's target; None if it is not a link. Raises LinkError."""
    status = os.fstat(below)
    if not stat.S_ISLNK(status.st_mode):
        return None
    folder_status = os.fstat(folder)
    of_system = where in _LINK_FOLDERS or any(is_within(where, top) for top in _LINK_TREES)
    of_root = (
        status.st_uid == folder_status.st_uid == 0
        and not folder_status.st_mode & _GROUP_OR_OTHER_WRITE
    )
    if not (of_system and of_root):
        raise LinkError(f"{posixpath.join(where, name)} is a symbolic link")
    target = os.readlink("", dir_fd=below)
    if not target:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return target
