"""Folders and files of the host that a pod asks for.

What is checked is the file that was opened, not its name: another pod may swap the one for the
other at any time. The shim opens it once more, right before it is mounted, and compares.

Upstream: checkTypeInternal, pkg/volume/hostpath/host_path.go v1.36.4. Where no type is given and
nothing is there, a folder is made, as containerd does. What upstream mounts and we refuse is in
docs/decisions/0039.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from podstatus.kube.objects.volumes import HostPathVolumeSource
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.mount_table import (
    MountEntry,
    MountTable,
    is_within,
    parse_mount_table,
)
from podstatus.runtime.process.paths.open_path import (
    LinkError,
    OpenedPath,
    create_missing,
    open_path,
)
from podstatus.runtime.process.sandbox.bubblewrap.arguments import HostPath
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field

PROC = "proc"
"""The type of file system by which a container reaches all processes, and their roots."""
_FIELD = "volumes.hostPath.path"
_READ_ONLY_FS_TYPES = frozenset(
    (
        *("cgroup", "cgroup2", "sysfs", "debugfs", "tracefs", "securityfs", "configfs"),
        *("bpf", "pstore", "efivarfs", "binfmt_misc", "fusectl", "resctrl", "nfsd", "rpc_pipefs"),
        *("selinuxfs", "smackfs", "devtmpfs", "devpts"),
    )
)
"""File systems of the kernel, where writing sets the machine and not a file."""
_TYPE_CHECKS = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class UnsafeHostPathError(CannotStartError):
    """A path that would let a container out, or into what is the agent's."""


def read_mount_table() -> MountTable:
    """What is mounted now."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return parse_mount_table(text)


def prepare_host_path(
    source: HostPathVolumeSource, hidden_paths: Collection[str], *, read_only: bool
) -> HostPath:
    """What was checked, and made if it is to be. `hidden_paths`: paths of the agent, without links.

    Raises CannotStartError.
    """
    path, wanted = source.path, source.type or ""
    if ".." in path.split("/"):
        raise config_error(f"invalid HostPath `{path}`: must not contain '..'")
    if not path.startswith("/") or "\0" in path:
        raise config_error(f"invalid HostPath `{path}`: must be an absolute path")
    if wanted and wanted not in _TYPE_CHECKS:
        raise config_error(f"{wanted} is an invalid volume type")
    with _translate_errors(path):
        with open_path(path) as opened:
            if not opened.missing:
                return _check_host_path(path, wanted, opened, hidden_paths, read_only=read_only)
            _create(path, wanted, opened, hidden_paths)
        with open_path(path) as opened:
            return _check_host_path(path, wanted, opened, hidden_paths, read_only=read_only)


def _create(path: str, source_type: str, opened: OpenedPath, hidden_paths: Collection[str]) -> None:
    """Make what is missing, where it is safe to."""
    _check_safe(path, opened, hidden_paths, read_only=True)
    holding = read_mount_table().find_mount(opened.path, opened.mount_id)
    if holding is not None:
        _check_fs_type(path, holding, read_only=False)
    if source_type in ("", "DirectoryOrCreate", "FileOrCreate"):
        create_missing(opened, is_folder=source_type != "FileOrCreate")
        return
    raise config_error(f"hostPath type check failed: {path} is not {_TYPE_CHECKS[source_type][1]}")


def _check_host_path(
    path: str,
    source_type: str,
    opened: OpenedPath,
    hidden_paths: Collection[str],
    *,
    read_only: bool,
) -> HostPath:
    found = opened.stat
    is_device = stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)
    if not is_device:
        _check_safe(path, opened, hidden_paths, read_only=read_only)
    if source_type and not _TYPE_CHECKS[source_type][0](found.st_mode):
        raise config_error(
            f"hostPath type check failed: {path} is not {_TYPE_CHECKS[source_type][1]}"
        )
    if is_device:
        raise _unsafe_error(path, "containers are given no devices; remove the volume")
    return HostPath(path=opened.path, device=found.st_dev, inode=found.st_ino)


def _check_safe(
    path: str, opened: OpenedPath, hidden_paths: Collection[str], *, read_only: bool
) -> None:
    # After it was opened: what is mounted by now is what would be shown.
    table = read_mount_table()
    holding = table.find_mount(opened.path, opened.mount_id)
    for mount in (*((holding,) if holding is not None else ()), *table.below(opened.path)):
        _check_fs_type(path, mount, read_only=read_only)
    places = table.visible_paths(hidden_paths)
    if _is_any(opened, places):
        raise _unsafe_error(path, "it is the agent's own; choose another path")
    if not read_only and any(is_within(place, opened.path) for place in places):
        why = "it holds what is the agent's own; mount it readOnly, or only what is needed of it"
        raise _unsafe_error(path, why)


def _check_fs_type(path: str, mount: MountEntry, *, read_only: bool) -> None:
    if mount.fs_type == PROC:
        why = (
            f"{mount.mount_point} is a procfs, by which a container gets at the processes and "
            "files of the host; mount only what is needed beside it"
        )
        raise _unsafe_error(path, why)
    if mount.fs_type in _READ_ONLY_FS_TYPES and not read_only:
        why = (
            f"{mount.mount_point} is a {mount.fs_type} file system, by which a container "
            "could change the "
            "machine; set readOnly: true on the volumeMount"
        )
        raise _unsafe_error(path, why)


def _is_any(opened: OpenedPath, places: Collection[str]) -> bool:
    """Whether it is one of these, lies in one, or is the same file under another name."""
    if any(is_within(opened.path, place) for place in places):
        return True
    found = opened.stat
    for place in places:
        with contextlib.suppress(OSError):
            if os.path.samestat(Path(place).lstat(), found):
                return True
    return False


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except LinkError as error:
        why = f"{error}, which another pod may change; write the path that it leads to"
        raise _unsafe_error(path, why) from error
    except OSError as error:
        why = (error.strerror or "").lower()
        raise config_error(f"cannot use hostPath {path}: {why}") from error


def _unsafe_error(path: str, reason: str) -> UnsafeHostPathError:
    refused = unsupported_field(_FIELD, path, reason)
    return UnsafeHostPathError(refused.reason, refused.message)
