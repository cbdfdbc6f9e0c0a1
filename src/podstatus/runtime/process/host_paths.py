"""Folders and files of the host that a pod asks for.

Upstream: checkTypeInternal, pkg/volume/hostpath/host_path.go v1.36.4. Where no type is given and
nothing is there, a folder is made, as containerd does.
"""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from podstatus.kube.volumes import HostPathVolumeSource
from podstatus.runtime.process.refusals import config_error, not_honoured
from podstatus.runtime.process.sandbox_root import lies_in_any

_CHECKS = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def ready_host_path(source: HostPathVolumeSource, secret: Collection[str]) -> str:
    """The path without links, after it was checked and made if it is to be.

    Nobody is let into the folders of the agent. Raises CannotStartError.
    """
    path, wanted = source.path, source.type or ""
    if ".." in path.split("/"):
        raise config_error(f"invalid HostPath `{path}`: must not contain '..'")
    if not path.startswith("/") or "\0" in path:
        raise config_error(f"invalid HostPath `{path}`: must be an absolute path")
    real = os.path.realpath(path)
    if lies_in_any(real, secret):
        raise not_honoured("volumes.hostPath.path", path, "it is the agent's own; choose another")
    try:
        mode = _mode(real, wanted)
    except OSError as error:
        raise config_error(
            f"cannot use hostPath {path}: {(error.strerror or '').lower()}"
        ) from error
    _check(path, wanted, mode)
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise not_honoured("volumes.hostPath.path", path, "containers are given no devices")
    return real


def _mode(path: str, wanted: str) -> int:
    if not os.path.lexists(path):
        if wanted in ("", "DirectoryOrCreate"):
            Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)
        elif wanted == "FileOrCreate":
            os.close(os.open(path, os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        else:
            return 0
    return Path(path).lstat().st_mode


def _check(path: str, wanted: str, mode: int) -> None:
    if not wanted:
        return
    if wanted not in _CHECKS:
        raise config_error(f"{wanted} is an invalid volume type")
    is_right, what = _CHECKS[wanted]
    if not is_right(mode):
        raise config_error(f"hostPath type check failed: {path} is not {what}")
