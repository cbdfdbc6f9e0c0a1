"""Checks and creates the hostPath volumes of pods.

The check applies to the opened file, not to its path: another pod may replace one by the other at
any time. The shim opens the path again right before the mount, and compares.

Upstream: checkTypeInternal, pkg/volume/hostpath/host_path.go v1.36.4. Without a type, a missing
path is created as a folder, as containerd does. Paths that upstream mounts and this runtime refuses
are listed in docs/decisions/0039.
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
"""Filesystem type that gives a container access to all processes and their roots."""
_FIELD = "volumes.hostPath.path"
_READ_ONLY_FS_TYPES = frozenset(
    (
        *("cgroup", "cgroup2", "sysfs", "debugfs", "tracefs", "securityfs", "configfs"),
        *("bpf", "pstore", "efivarfs", "binfmt_misc", "fusectl", "resctrl", "nfsd", "rpc_pipefs"),
        *("selinuxfs", "smackfs", "devtmpfs", "devpts"),
    )
)
"""Kernel filesystems, where a write configures the machine instead of a file."""
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
    """A path that would expose the host or the agent's own files to a container."""


def read_mount_table() -> MountTable:
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return parse_mount_table(text)


def prepare_host_path(
    source: HostPathVolumeSource, hidden_paths: Collection[str], *, read_only: bool
) -> HostPath:
    """Check a host path, and create it if its type says so.

    `hidden_paths` are the agent's paths, without links. Raises CannotStartError.
    """
    path, source_type = source.path, source.type or ""
    if ".." in path.split("/"):
        raise config_error(f"invalid HostPath `{path}`: must not contain '..'")
    if not path.startswith("/") or "\0" in path:
        raise config_error(f"invalid HostPath `{path}`: must be an absolute path")
    if source_type and source_type not in _TYPE_CHECKS:
        raise config_error(f"{source_type} is an invalid volume type")
    with _translate_errors(path):
        with open_path(path) as opened:
            if not opened.missing:
                return _check_host_path(
                    path, source_type, opened, hidden_paths, read_only=read_only
                )
            _create(path, source_type, opened, hidden_paths)
        with open_path(path) as opened:
            return _check_host_path(path, source_type, opened, hidden_paths, read_only=read_only)


def _create(path: str, source_type: str, opened: OpenedPath, hidden_paths: Collection[str]) -> None:
    """Create a missing path, if that is safe."""
    _check_safe(path, opened, hidden_paths, read_only=True)
    mount = read_mount_table().find_mount(opened.path, opened.mount_id)
    if mount is not None:
        _check_fs_type(path, mount, read_only=False)
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
    status = opened.stat
    is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    if not is_device:
        _check_safe(path, opened, hidden_paths, read_only=read_only)
    if source_type and not _TYPE_CHECKS[source_type][0](status.st_mode):
        raise config_error(
            f"hostPath type check failed: {path} is not {_TYPE_CHECKS[source_type][1]}"
        )
    if is_device:
        raise _unsafe_error(path, "containers have no access to devices; remove the volume")
    return HostPath(path=opened.path, device=status.st_dev, inode=status.st_ino)


def _check_safe(
    path: str, opened: OpenedPath, hidden_paths: Collection[str], *, read_only: bool
) -> None:
    # After opening: the current mounts are those that the container would see.
    table = read_mount_table()
    own_mount = table.find_mount(opened.path, opened.mount_id)
    for mount in (*((own_mount,) if own_mount is not None else ()), *table.below(opened.path)):
        _check_fs_type(path, mount, read_only=read_only)
    hidden = table.visible_paths(hidden_paths)
    if _is_any(opened, hidden):
        raise _unsafe_error(path, "it belongs to the agent; choose another path")
    if not read_only and any(is_within(own, opened.path) for own in hidden):
        reason = "it contains paths of the agent; mount it readOnly, or mount only what is needed"
        raise _unsafe_error(path, reason)


def _check_fs_type(path: str, mount: MountEntry, *, read_only: bool) -> None:
    if mount.fs_type == PROC:
        reason = (
            f"{mount.mount_point} is a procfs, which gives a container access to processes and "
            "files of the host; mount only what is needed outside of it"
        )
        raise _unsafe_error(path, reason)
    if mount.fs_type in _READ_ONLY_FS_TYPES and not read_only:
        reason = (
            f"{mount.mount_point} is a {mount.fs_type} filesystem, through which a container "
            "could reconfigure the machine; set readOnly: true on the volumeMount"
        )
        raise _unsafe_error(path, reason)


def _is_any(opened: OpenedPath, paths: Collection[str]) -> bool:
    """Return whether the path is one of these, lies below one, or is a hard link to one."""
    if any(is_within(opened.path, path) for path in paths):
        return True
    status = opened.stat
    for path in paths:
        with contextlib.suppress(OSError):
            if os.path.samestat(Path(path).lstat(), status):
                return True
    return False


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except LinkError as error:
        reason = f"{error}, which another pod may change; use the link's target instead"
        raise _unsafe_error(path, reason) from error
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise config_error(f"cannot use hostPath {path}: {reason}") from error


def _unsafe_error(path: str, reason: str) -> UnsafeHostPathError:
    error = unsupported_field(_FIELD, path, reason)
    return UnsafeHostPathError(error.reason, error.message)
