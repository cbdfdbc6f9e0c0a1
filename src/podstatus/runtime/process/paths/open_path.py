"""Open a path of the host step by step, so that what is checked is what was opened.

Each step is opened in the folder before it, and no symbolic link is followed by the kernel. Links
of the system are followed here: those of root in `/`, `/var`, and below `/etc` and `/usr`, where
only root can write. A process that can put a link there is root on the host already; anywhere
else it may be another pod that swaps a folder for a link.

Upstream: the kubelet resolves a hostPath by name, with all its links, twice.
"""

import errno
import os
import posixpath
import stat
from types import TracebackType
from typing import Self

import msgspec

from podstatus.runtime.process.paths.mount_table import is_within

_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
"""As the kernel has it."""
_LINK_FOLDERS, _LINK_TREES = ("/", "/var"), ("/etc", "/usr")
_GROUP_OR_OTHER_WRITE = 0o022


class LinkError(Exception):
    """A symbolic link is in the way that may not be followed; the message names it."""


class OpenedPath(msgspec.Struct):
    """A file or folder that was opened as a place only (O_PATH); to be closed by `with`."""

    file: int
    path: str
    """Where it is, without links."""
    missing: tuple[str, ...] = ()
    """The steps that are not there: what is opened is the last folder that is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.file)

    @property
    def stat(self) -> os.stat_result:
        """What it is."""
        return os.fstat(self.file)

    @property
    def mount_id(self) -> int | None:
        """Of the mount that it was opened in."""
        with open(f"/proc/self/fdinfo/{self.file}", encoding="ascii") as lines:  # noqa: PTH123
            for line in lines:
                name, _, value = line.partition(":")
                if name == "mnt_id":
                    return int(value)
        return None


def open_path(path: str) -> OpenedPath:
    """Open an absolute path. Raises LinkError, OSError."""
    for _ in range(_MAX_LINKS + 1):
        found = _open_or_follow(path)
        if isinstance(found, OpenedPath):
            return found
        path = found
    raise LinkError(f"{path}: too many symbolic links")


def create_missing(opened: OpenedPath, *, is_folder: bool) -> None:
    """Make what is missing: a folder with those on the way to it, or an empty file.

    Raises OSError.
    """
    if not is_folder:
        if len(opened.missing) > 1:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        os.close(os.open(opened.missing[0], _CREATE_FLAGS, 0o644, dir_fd=opened.file))
        return
    here = os.dup(opened.file)
    try:
        for step in opened.missing:
            os.mkdir(step, 0o755, dir_fd=here)
            below = os.open(step, _PATH_FLAGS | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)


def _open_or_follow(path: str) -> OpenedPath | str:
    """What is at a path; or the path that a link on the way leads to."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    here, walked = os.open("/", _PATH_FLAGS | os.O_DIRECTORY), "/"
    for number, step in enumerate(steps):
        try:
            below = os.open(step, _PATH_FLAGS, dir_fd=here)
        except FileNotFoundError:
            return OpenedPath(here, walked, tuple(steps[number:]))
        except BaseException:
            os.close(here)
            raise
        try:
            target = _read_link(here, walked, below, step)
        except BaseException:
            os.close(below)
            raise
        finally:
            os.close(here)
        here = below
        if target is not None:
            os.close(here)
            return posixpath.normpath(posixpath.join(walked, target, *steps[number + 1 :]))
        walked = posixpath.join(walked, step)
    return OpenedPath(here, walked)


def _read_link(folder: int, where: str, below: int, name: str) -> str | None:
    """Where a link leads; None if it is none. Raises LinkError."""
    found = os.fstat(below)
    if not stat.S_ISLNK(found.st_mode):
        return None
    above = os.fstat(folder)
    of_system = where in _LINK_FOLDERS or any(is_within(where, top) for top in _LINK_TREES)
    of_root = found.st_uid == above.st_uid == 0 and not above.st_mode & _GROUP_OR_OTHER_WRITE
    if not (of_system and of_root):
        raise LinkError(f"{posixpath.join(where, name)} is a symbolic link")
    target = os.readlink("", dir_fd=below)
    if not target:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return target
